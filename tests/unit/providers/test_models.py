"""Connections, roles, defaults and credentials."""

import os
import subprocess
import sys
import threading
import warnings

import pytest

from littleghost.errors import ConfigurationError, CredentialError, UnknownModelError
from littleghost.providers import Models, ScriptedProvider, register_adapter
from littleghost.providers.openai_compatible import OpenAICompatible


class EchoProvider:
    def __init__(self, greeting="hi"):
        self.greeting = greeting
        self.is_closed = False

    def stream(self, request, control):
        yield from ()

    def close(self):
        self.is_closed = True


@pytest.fixture
def models():
    models = Models({})
    models.connect("test", "scripted", script=["a"])
    return models


def test_a_target_is_split_at_the_first_colon(models):
    resolved = models.resolve("test:family:model")

    assert isinstance(resolved.provider, ScriptedProvider)
    assert (resolved.connection, resolved.model) == ("test", "family:model")
    assert resolved.target == "test:family:model"
    assert resolved.settings == {}


def test_a_role_is_followed_with_its_settings(models):
    models.role("base", "test:big", {"temperature": 0, "max_tokens": 10})
    models.role("support", "base", {"temperature": 1})

    resolved = models.resolve("support.billing.refunds")

    assert resolved.target == "test:big"
    assert resolved.settings == {"temperature": 1, "max_tokens": 10}


def test_a_mapping_names_a_connection_or_a_selection(models):
    models.role("base", "test:big", {"temperature": 0})
    inline = models.resolve({"provider": "test", "model": "m", "temperature": 1})
    on_top = models.resolve({"model": "base", "max_tokens": 5})

    assert (inline.target, inline.settings) == ("test:m", {"temperature": 1})
    assert (on_top.target, on_top.settings) == ("test:big", {"temperature": 0, "max_tokens": 5})


@pytest.mark.parametrize(
    ("selection", "told"),
    [
        ("nowhere:m", r"'nowhere:m'.*no connection 'nowhere'.*test"),
        ("fast", r"'fast'.*no role 'fast' \(roles: base\).*connection:model"),
        (":m", "is not 'connection:model'"),
        ("test:", "is not 'connection:model'"),
        ({"provider": "nowhere", "model": "m"}, "no connection 'nowhere'"),
        ({"provider": "test"}, "needs 'model'"),
        ({"provider": 3, "model": "m"}, "needs 'model'"),
        (None, "no model is chosen and there is no default"),
    ],
)
def test_what_is_not_configured_is_refused_by_name(models, selection, told):
    models.role("base", "test:m")

    with pytest.raises(UnknownModelError, match=told):
        models.check(selection)
    with pytest.raises(UnknownModelError, match=told):
        models.resolve(selection)


def test_roles_in_a_circle_are_refused(models):
    models.role("a", "b")
    models.role("b", "a")

    with pytest.raises(ConfigurationError, match="a → b → a"):
        models.check("a")


@pytest.mark.parametrize("name", ["", "a:b"])
def test_bad_names_are_refused(models, name):
    with pytest.raises(ConfigurationError):
        models.connect(name, "openai")
    with pytest.raises(ConfigurationError):
        models.role(name, "test:m")


def test_local_services_need_no_connection_and_no_key():
    models = Models({})
    for name in ("ollama", "lm_studio", "vllm"):
        models.check(f"{name}:m")
        assert isinstance(models.resolve(f"{name}:m").provider, OpenAICompatible)


def test_a_missing_key_is_told_by_the_name_of_its_variable():
    models = Models({})

    with pytest.raises(CredentialError, match="LITTLEGHOST_OPENROUTER_API_KEY or OPENROUTER"):
        models.check("openrouter:m")
    models.connect("openrouter", "openrouter", api_key=lambda: "later")
    models.check("openrouter:m")


def test_adapters_and_options_are_checked_when_connecting(models):
    with pytest.raises(ConfigurationError, match=r"no adapter 'opnai'; there are: .*openai"):
        models.connect("x", "opnai")
    with pytest.raises(ConfigurationError, match=r"no option 'apikey'; it has: .*api_key"):
        models.connect("x", "openai", apikey="k")
    with pytest.raises(ConfigurationError, match="needs the option 'base_url'"):
        models.connect("x", "openai_compatible")
    with pytest.raises(ConfigurationError, match="is built in"):
        register_adapter("openai", EchoProvider)
    with pytest.raises(ConfigurationError, match="makes no provider"):
        models.connect("x", 7)
    with pytest.raises(ConfigurationError, match="takes no options"):
        models.connect("x", EchoProvider(), greeting="x")


def test_a_provider_of_ones_own_is_one_class_and_one_registration(models):
    register_adapter("echo", EchoProvider)
    models.connect("echo", "echo", greeting="hey")
    models.connect("bad", "echo", wrong=1)

    assert models.resolve("echo:m").provider.greeting == "hey"
    with pytest.raises(ConfigurationError, match=r"'bad'.*does not take these options \(wrong\)"):
        models.resolve("bad:m")


def test_a_class_a_function_or_a_provider_can_be_connected(models):
    made = EchoProvider("made")
    models.connect("one", EchoProvider, greeting="class")
    models.connect("two", lambda: EchoProvider("function"))
    models.connect("three", made)

    assert models.resolve("one:m").provider.greeting == "class"
    assert models.resolve("two:m").provider.greeting == "function"
    assert models.resolve("three:m").provider is made
    models.close()
    assert made.is_closed


def test_a_provider_is_built_once_whoever_asks(models):
    models.connect("slow", lambda: EchoProvider())
    barrier, found = threading.Barrier(20), []

    def resolve():
        barrier.wait(5)
        found.append(models.resolve("slow:m").provider)

    threads = [threading.Thread(target=resolve) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(5)

    assert len(found) == 20
    assert len(set(map(id, found))) == 1


def test_connecting_again_replaces_the_connection(models):
    models.connect("c", EchoProvider, greeting="one")
    first = models.resolve("c:m").provider
    models.connect("c", EchoProvider, greeting="two")

    assert first.greeting == "one"
    assert models.resolve("c:m").provider.greeting == "two"


def test_a_forked_child_builds_its_own_provider(models):
    models.connect("c", lambda: EchoProvider(str(os.getpid())))
    assert models.resolve("c:m").provider.greeting == str(os.getpid())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        is_own = models.resolve("c:m").provider.greeting == str(os.getpid())
        os._exit(0 if is_own else 1)

    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


ROUTER, OPENAI = "openrouter:openai/gpt-5.6-luna", "openai:gpt-5.6-luna"


@pytest.mark.parametrize(
    ("environ", "default"),
    [
        ({}, None),
        ({"OPENAI_API_KEY": "k"}, OPENAI),
        ({"OPENAI_API_KEY": "k", "OPENROUTER_API_KEY": "k"}, ROUTER),
        ({"LITTLEGHOST_OPENAI_API_KEY": "k", "OPENROUTER_API_KEY": "k"}, OPENAI),
        ({"LITTLEGHOST_OPENROUTER_API_KEY": "k", "LITTLEGHOST_OPENAI_API_KEY": "k"}, ROUTER),
        ({"OPENAI_API_KEY": "  "}, None),
        ({"OPENAI_API_KEY": "k", "LITTLEGHOST_MODEL": "ollama:m"}, "ollama:m"),
    ],
)
def test_the_environment_gives_a_default(environ, default):
    models = Models.from_environment(environ)

    assert models.default == default
    if default:
        models.check()


@pytest.mark.parametrize(
    ("model", "profile"),
    [("ollama:m", "ollama"), ("mine:m", "openai_compatible"), ("openai:m", "openai")],
)
def test_the_environment_says_where_the_connection_is(model, profile):
    models = Models.from_environment(
        {
            "LITTLEGHOST_MODEL": model,
            "LITTLEGHOST_BASE_URL": "http://llm:1/v1",
            "LITTLEGHOST_ALLOW_INSECURE_HTTP": "1",
        }
    )
    provider = models.resolve().provider

    assert repr(provider) == f"OpenAICompatible({profile!r}, base_url='http://llm:1/v1')"


def test_an_insecure_address_is_refused_at_once():
    environ = {"LITTLEGHOST_MODEL": "mine:m", "LITTLEGHOST_BASE_URL": "http://llm:1/v1"}

    with pytest.raises(ConfigurationError, match="unencrypted"):
        Models.from_environment(environ)
    with pytest.raises(ConfigurationError, match="unencrypted"):
        Models({}).connect("x", "ollama", base_url="http://llm:1/v1")


def test_secrets_are_never_shown():
    models = Models.from_environment({"OPENAI_API_KEY": "sk-very-secret"})
    models.connect("more", "openai", api_key="sk-also-secret")
    shown = repr(models) + repr(models.resolve("more:m")) + repr(models._connections)

    assert "secret" not in shown


def test_importing_the_models_imports_no_http_client():
    code = (
        "import sys; from littleghost.providers import Models; m = Models({}); "
        "m.connect('t', 'scripted', script=['a']); m.resolve('t:m'); "
        "m.connect('o', 'openai', api_key='k'); m.check('o:m'); "
        "sys.exit('httpx' in sys.modules or 'httpcore' in sys.modules)"
    )

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
