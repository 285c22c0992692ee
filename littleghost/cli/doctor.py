"""`littleghost doctor`."""

from __future__ import annotations

import click

from littleghost.cli import exits
from littleghost.cli.checks import Check, check_all
from littleghost.cli.escape import one_line
from littleghost.cli.masked import masked_settings
from littleghost.cli.options import Options, verb
from littleghost.cli.output import coloured, json_line, say
from littleghost.cli.proof import prove_runs


@verb("doctor")
@click.option("--runs", is_flag=True, help="Prove of every unfinished run that it can still end.")
def command(options: Options, *, runs: bool) -> int:
    """Check Redis, broker, workers and settings, and say what to do.

    Exits with 1 when something fails, 75 when Redis cannot be reached.
    """
    work = options.connect()
    checks = check_all(work)
    is_reachable = checks[0].status != "fail"
    if runs and is_reachable:
        checks += prove_runs(work)
    settings = masked_settings(work.settings)
    if options.as_json:
        json_line(
            {
                "ok": all(check.status != "fail" for check in checks),
                "checks": [check.to_json() for check in checks],
                "settings": settings,
            }
        )
    else:
        _print(checks)
        if options.verbosity >= 0:
            say("\nsettings")
            for name, value in settings.items():
                say(f"  {name:<22} {one_line(str(value))}")
    if not is_reachable:
        return exits.UNAVAILABLE
    return exits.FAILED if any(check.status == "fail" for check in checks) else exits.OK


def _print(checks: list[Check]) -> None:
    for check in checks:
        click.echo(f"{coloured(check.status, 5)} {check.name:<10} {one_line(check.detail)}")
        if check.cure:
            say(f"{'':16} → {one_line(check.cure)}")
