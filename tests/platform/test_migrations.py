"""Every migration works with the code before it: it adds, and takes nothing away.

A release migrates while the version before still runs, and going back means starting old code on the
new schema. So an old INSERT that does not know a new column, and an old SELECT that names an old one,
have to work.
"""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.apps import apps
from django.db import migrations, models
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations.base import Operation

OURS = ("accounts", "audit", "tools", "approvals", "agents")
# These were there before a version was released; nothing runs beside code older than they are.
BEFORE_THE_FIRST_RELEASE = {
    "accounts": 10,
    "audit": 3,
    "tools": 8,
    "approvals": 5,
    "agents": 7,
}
TAKES_AWAY = re.compile(
    r"\bDROP\s+(TABLE|COLUMN|VIEW|SCHEMA)\b|\bRENAME\b|\bSET\s+NOT\s+NULL\b|\bTRUNCATE\b|"
    r"\bALTER\s+COLUMN\s+\S+\s+(SET\s+DATA\s+)?TYPE\b",
    re.IGNORECASE,
)
GONE = (
    migrations.RemoveField,
    migrations.DeleteModel,
    migrations.RenameField,
    migrations.RenameModel,
    migrations.AlterModelTable,
)


def faults_of(operation: Operation, made_here: frozenset[str] = frozenset()) -> Iterator[str]:
    """What old code would trip over. Tables that this migration makes itself are nobody's yet."""
    model = getattr(operation, "model_name", "").lower()
    if isinstance(operation, GONE):
        yield "old code still uses it"
    elif isinstance(operation, migrations.AddField) and model not in made_here:
        yield from _faults_of_field(operation.field)
    elif isinstance(operation, migrations.AlterField) and model not in made_here:
        yield "add a new field beside it"
    elif isinstance(operation, migrations.RunSQL):
        yield from (
            f"{found[0]} in it" for found in map(TAKES_AWAY.search, _texts(operation.sql)) if found
        )
    if isinstance(operation, migrations.RunSQL | migrations.RunPython) and not operation.reversible:
        yield "it cannot be taken back"


def _faults_of_field(field: Any) -> Iterator[str]:
    if not (field.null or field.many_to_many or field.has_db_default()):
        yield "an INSERT of old code leaves it out: give it a db_default"
    if field.unique and not field.null:
        yield "two INSERTs of old code would both take the default"


def _texts(sql: Any) -> list[str]:
    parts = [sql] if isinstance(sql, str) else list(sql)
    return [re.sub(r"--.*", "", part if isinstance(part, str) else part[0]) for part in parts]


def made_by(migration: Any) -> frozenset[str]:
    operations = migration.operations
    return frozenset(o.name.lower() for o in operations if isinstance(o, migrations.CreateModel))


def released_later() -> list[Any]:
    loader = MigrationLoader(None)
    return [
        migration
        for (app, name), migration in sorted(loader.disk_migrations.items())
        if app in OURS and int(name[:4]) > BEFORE_THE_FIRST_RELEASE[app]
    ]


def test_every_app_of_ours_with_tables_is_looked_at():
    with_models = {
        config.label for config in apps.get_app_configs() if "/site-packages/" not in config.path
    }

    assert {label for label in with_models if list(apps.get_app_config(label).get_models())} == set(
        OURS
    )


def test_no_migration_takes_away_what_the_version_before_it_uses():
    later = released_later()
    assert later

    faults = [
        f"{migration.app_label}.{migration.name}: {operation.describe()}: {fault}"
        for migration in later
        for operation in migration.operations
        for fault in faults_of(operation, made_by(migration))
    ]

    assert faults == []


@pytest.mark.parametrize(
    "operation",
    [
        migrations.RemoveField("step", "error"),
        migrations.DeleteModel("Step"),
        migrations.RenameField("step", "error", "fault"),
        migrations.RenameModel("Step", "Stage"),
        migrations.AlterModelTable("step", "stage"),
        migrations.AddField("step", "needs", models.CharField(max_length=20)),
        migrations.AddField("step", "needs", models.CharField(default="", max_length=20)),
        migrations.AddField(
            "step", "token", models.CharField(db_default="", unique=True, max_length=20)
        ),
        migrations.AlterField("step", "error", models.CharField(max_length=5)),
        migrations.RunSQL("ALTER TABLE agents_step DROP COLUMN error", ""),
        migrations.RunSQL([("ALTER TABLE agents_step RENAME error TO fault", None)], ""),
        migrations.RunSQL("ALTER TABLE agents_step ALTER error SET NOT NULL", ""),
        migrations.RunSQL("ALTER TABLE agents_step ALTER COLUMN n TYPE smallint", ""),
        migrations.RunSQL("CREATE INDEX i ON agents_step (n)"),
        migrations.RunPython(lambda apps, editor: None),
    ],
    ids=lambda operation: operation.describe(),
)
def test_what_old_code_would_trip_over_is_found(operation):
    assert list(faults_of(operation))


@pytest.mark.parametrize(
    "operation",
    [
        migrations.AddField("step", "needs", models.CharField(db_default="", max_length=20)),
        migrations.AddField("step", "seen_at", models.DateTimeField(null=True)),
        migrations.CreateModel("Stage", [("id", models.BigAutoField(primary_key=True))]),
        migrations.RunSQL("CREATE TRIGGER t BEFORE UPDATE ON agents_step", "DROP TRIGGER t"),
        migrations.RunSQL("-- renames nothing: RENAME\nSELECT 1", ""),
    ],
    ids=lambda operation: operation.describe(),
)
def test_what_only_adds_is_let_through(operation):
    assert list(faults_of(operation)) == []


def test_what_a_migration_does_to_its_own_new_table_is_its_own_business():
    plain = migrations.AddField("stage", "name", models.CharField(max_length=20))

    assert list(faults_of(plain, frozenset({"stage"}))) == []
