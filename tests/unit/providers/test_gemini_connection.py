"""Connections to Gemini and Vertex AI: their options, their keys, where they are."""

import pytest

from littleghost.errors import ConfigurationError, CredentialError
from littleghost.providers import Models, register_adapter
from littleghost.providers.gemini import Gemini


def test_gemini_is_a_connection_that_is_there():
    models = Models({"GOOGLE_API_KEY": "k"})
    models.check("gemini:gemini-3-pro")
    resolved = models.resolve("gemini:gemini-3-pro")

    assert isinstance(resolved.provider, Gemini)
    assert "generativelanguage.googleapis.com/v1beta" in repr(resolved.provider)
    with pytest.raises(CredentialError, match="GEMINI_API_KEY or GOOGLE_API_KEY"):
        Models({}).check("gemini:m")


@pytest.mark.parametrize(
    ("location", "url"),
    [
        (None, "https://aiplatform.googleapis.com/v1"),
        ("global", "https://aiplatform.googleapis.com/v1"),
        ("eu", "https://aiplatform.eu.rep.googleapis.com/v1"),
        ("europe-west4", "https://europe-west4-aiplatform.googleapis.com/v1"),
    ],
)
def test_vertex_is_where_its_location_is(location, url):
    models = Models({"GOOGLE_OAUTH_TOKEN": "t"})
    options = {"location": location} if location else {}
    models.connect("v", "vertex", project="my-project", **options)
    models.check("v:gemini-3-pro")

    assert f"base_url={url!r}" in repr(models.resolve("v:m").provider)


def test_a_token_may_be_a_function_and_must_be_there():
    models = Models({})
    models.connect("v", "vertex", project="p")
    with pytest.raises(CredentialError, match="GOOGLE_OAUTH_TOKEN"):
        models.check("v:m")
    for name in ("token", "api_key"):
        models.connect("v", "vertex", project="p", **{name: lambda: "t"})
        models.check("v:m")
        assert isinstance(models.resolve("v:m").provider, Gemini)


@pytest.mark.parametrize(
    ("adapter", "options", "told"),
    [
        ("gemini", {"project": "p"}, r"'gemini' has no option 'project'; it has: .*api_key"),
        ("gemini", {"usage_in_stream": True}, "no option 'usage_in_stream'"),
        ("gemini", {"base_url": "http://example.com/v1"}, "unencrypted"),
        ("vertex", {}, "needs the option 'project'"),
        ("vertex", {"project": "a/b"}, "'a/b'"),
        ("vertex", {"project": "p", "location": "evil.example/"}, "location 'evil.example/'"),
        ("vertex", {"project": "p", "base_url": "ftp://x"}, "https://"),
    ],
)
def test_options_are_checked_when_connecting(adapter, options, told):
    with pytest.raises(ConfigurationError, match=told):
        Models({}).connect("x", adapter, **options)


def test_limits_and_addresses_can_be_set():
    models = Models({})
    models.connect("g", "gemini", api_key="k", base_url="https://g.example/v1", read_timeout_s=5)
    provider = models.resolve("g:m").provider

    assert "https://g.example/v1" in repr(provider)
    with pytest.raises(ConfigurationError, match="is built in"):
        register_adapter("vertex", lambda: provider)


def test_the_environment_may_say_where_gemini_is():
    models = Models.from_environment(
        {
            "LITTLEGHOST_MODEL": "gemini:m",
            "LITTLEGHOST_BASE_URL": "https://g.example/v1beta",
            "GEMINI_API_KEY": "k",
        }
    )

    assert "https://g.example/v1beta" in repr(models.resolve().provider)
