"""The table of dialects: each profile's is there, and its connections take its options only."""

import pytest

from littleghost.errors import ConfigurationError, CredentialError
from littleghost.providers import Models
from littleghost.providers.dialects import DIALECTS
from littleghost.providers.profiles import PROFILES

# What a connection must say beside what the profile knows.
NEEDED = {
    "openai_compatible": {"base_url": "https://x.example/v1"},
    "vertex": {"project": "p"},
}


@pytest.mark.parametrize("name", PROFILES)
def test_each_profile_becomes_the_provider_of_its_dialect(name):
    models = Models({})
    models.connect("c", name, api_key="k", read_timeout_s=7, **NEEDED.get(name, {}))
    provider = models.resolve("c:m").provider

    assert type(provider) is DIALECTS[PROFILES[name].dialect].load()
    assert provider.profile == PROFILES[name]


@pytest.mark.parametrize("name", PROFILES)
def test_habits_of_the_chat_dialect_are_refused_by_all_others(name):
    models, needed = Models({}), NEEDED.get(name, {})
    if PROFILES[name].dialect == "chat":
        models.connect("c", name, api_key="k", usage_in_stream=False, **needed)
        assert models.resolve("c:m").provider.profile.usage_in_stream is False
    else:
        with pytest.raises(ConfigurationError, match=f"{name!r} has no option 'usage_in_stream'"):
            models.connect("c", name, usage_in_stream=False, **needed)


@pytest.mark.parametrize("name", PROFILES)
def test_a_connection_says_whether_it_needs_a_key(name):
    models, needed = Models({}), NEEDED.get(name, {})
    models.connect("without", name, needs_key=False, **needed)
    models.connect("with", name, needs_key=True, **needed)

    models.check("without:m")
    assert models.resolve("without:m").provider.profile.needs_key is False
    with pytest.raises(CredentialError, match="'with' needs a key"):
        models.check("with:m")


def test_only_one_dialect_has_an_option_of_its_own():
    for option, owner in (("encrypted_reasoning", "openai_responses"), ("project", "vertex")):
        for name in PROFILES.keys() - {owner}:
            with pytest.raises(ConfigurationError, match=f"no option {option!r}"):
                Models({}).connect("c", name, **{option: "x"})


def test_an_empty_habit_is_not_set():
    models = Models({})
    models.connect("c", "openai", api_key="k", max_tokens_field="", has_developer_role=False)
    profile = models.resolve("c:m").provider.profile

    assert profile.max_tokens_field == "max_completion_tokens"
    assert profile.has_developer_role is False
