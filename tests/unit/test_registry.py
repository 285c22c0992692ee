"""Assemblies are found by name among those that were imported, and nowhere else (P9)."""

from collections.abc import Iterator

import pytest

from littleghost import Agent, registry
from littleghost.errors import DefinitionError, UnknownAssemblyError


@pytest.fixture(autouse=True)
def known() -> Iterator[None]:
    before = dict(registry._assemblies)
    registry._assemblies.clear()
    yield
    registry._assemblies.clear()
    registry._assemblies.update(before)


def test_a_class_is_known_by_module_and_name_from_its_definition_on() -> None:
    class Known(Agent):
        pass

    name = f"{__name__}:{Known.__qualname__}"
    assert registry.name_of(Known) == name
    assert registry.lookup(name) is Known
    assert registry.names() == [name]


def test_an_abstract_base_is_not_registered_and_its_subclass_is() -> None:
    class Base(Agent, abstract=True):
        pass

    class Concrete(Base):
        pass

    assert registry.names() == [registry.name_of(Concrete)]


def test_a_reloaded_module_replaces_its_classes() -> None:
    first = type("Again", (Agent,), {})
    second = type("Again", (Agent,), {})
    assert registry.name_of(first) == registry.name_of(second)
    assert registry.lookup(registry.name_of(first)) is second


@pytest.mark.parametrize("name", ["", "os:system", "nowhere:Agent", "littleghost.agent:Agent"])
def test_a_name_that_was_not_registered_is_not_imported(name: str) -> None:
    with pytest.raises(UnknownAssemblyError, match="import the module"):
        registry.lookup(name)


def test_checking_all_names_the_class_that_is_wrong() -> None:
    class Fine(Agent):
        pass

    registry.check_all()

    class Wrong(Agent):
        tools = "none"  # type: ignore[assignment]

    with pytest.raises(DefinitionError, match=r"Wrong.*tools"):
        registry.check_all()
