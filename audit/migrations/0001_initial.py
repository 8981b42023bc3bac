import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.expressions
import django.db.models.functions.datetime
import django.db.models.lookups
from django.db import migrations, models

import audit.functions

APPEND_ONLY = """
CREATE FUNCTION audit_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% on % is refused: audit rows are only ever added', TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'restrict_violation';
END $$;
"""
APPEND_ONLY_REVERSE = "DROP FUNCTION audit_refuse_change();"

# Row triggers do not see TRUNCATE, so it has one of its own, which a test run can switch off alone.
GUARD = """
CREATE TRIGGER {table}_no_update BEFORE UPDATE ON {table}
    FOR EACH ROW EXECUTE FUNCTION audit_refuse_change();
CREATE TRIGGER {table}_no_delete BEFORE DELETE ON {table}
    FOR EACH ROW EXECUTE FUNCTION audit_refuse_change();
CREATE TRIGGER {table}_no_truncate BEFORE TRUNCATE ON {table}
    FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse_change();
"""
GUARD_REVERSE = """
DROP TRIGGER {table}_no_update ON {table};
DROP TRIGGER {table}_no_delete ON {table};
DROP TRIGGER {table}_no_truncate ON {table};
"""

# A key may be wrapped anew or destroyed, once; nothing else about it ever changes.
GUARD_KEYS = """
CREATE FUNCTION audit_guard_customer_key() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.destroyed_at IS NOT NULL
        OR (NEW.id, NEW.shop_id, NEW.customer, NEW.created_at)
            IS DISTINCT FROM (OLD.id, OLD.shop_id, OLD.customer, OLD.created_at)
    THEN
        RAISE EXCEPTION 'a customer key can only be wrapped anew or destroyed, once'
            USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER audit_customer_key_update BEFORE UPDATE ON audit_customer_key
    FOR EACH ROW EXECUTE FUNCTION audit_guard_customer_key();
CREATE TRIGGER audit_customer_key_no_delete BEFORE DELETE ON audit_customer_key
    FOR EACH ROW EXECUTE FUNCTION audit_refuse_change();
CREATE TRIGGER audit_customer_key_no_truncate BEFORE TRUNCATE ON audit_customer_key
    FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse_change();
"""
GUARD_KEYS_REVERSE = """
DROP TRIGGER audit_customer_key_update ON audit_customer_key;
DROP TRIGGER audit_customer_key_no_delete ON audit_customer_key;
DROP TRIGGER audit_customer_key_no_truncate ON audit_customer_key;
DROP FUNCTION audit_guard_customer_key();
"""

# The sealer takes its rows from here and not from `id > last`: a row of a transaction still in
# flight appears when it commits, however late, and is never passed over.
OUTBOX = """
CREATE FUNCTION audit_await_seal() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO audit_unsealed (event_id) SELECT id FROM inserted;
    RETURN NULL;
END $$;
CREATE TRIGGER audit_event_await_seal AFTER INSERT ON audit_event
    REFERENCING NEW TABLE AS inserted
    FOR EACH STATEMENT EXECUTE FUNCTION audit_await_seal();
"""
OUTBOX_REVERSE = """
DROP TRIGGER audit_event_await_seal ON audit_event;
DROP FUNCTION audit_await_seal();
"""


def guard(table: str) -> migrations.RunSQL:
    return migrations.RunSQL(GUARD.format(table=table), GUARD_REVERSE.format(table=table))


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Event",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("at", models.DateTimeField()),
                ("shop_id", models.BigIntegerField(null=True)),
                ("actor", models.CharField(max_length=200)),
                ("action", models.CharField(max_length=100)),
                ("subject", models.CharField(max_length=200)),
                ("task_id", models.BigIntegerField(null=True)),
                ("ticket_id", models.BigIntegerField(null=True)),
                ("customer", models.CharField(blank=True, max_length=200)),
                ("order_id", models.CharField(blank=True, max_length=200)),
                ("tool", models.CharField(blank=True, max_length=100)),
                ("outcome", models.CharField(blank=True, max_length=100)),
                ("amount", models.BigIntegerField(null=True)),
                ("currency", models.CharField(blank=True, max_length=3)),
                ("data", models.JSONField(default=dict)),
                ("personal_digest", models.BinaryField(null=True)),
                ("digest", models.BinaryField()),
            ],
            options={
                "ordering": ["id"],
            },
        ),
        migrations.CreateModel(
            name="Seal",
            fields=[
                ("id", models.BigIntegerField(primary_key=True, serialize=False)),
                ("previous", models.BinaryField(unique=True)),
                (
                    "event_ids",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(), size=None
                    ),
                ),
                ("leaves", models.BinaryField()),
                ("count", models.IntegerField()),
                ("root", models.BinaryField()),
                ("signed_at", models.DateTimeField()),
                ("key_id", models.CharField(max_length=16)),
                ("signature", models.BinaryField()),
                ("digest", models.BinaryField(unique=True)),
            ],
        ),
        migrations.CreateModel(
            name="Unsealed",
            fields=[
                ("event_id", models.BigIntegerField(primary_key=True, serialize=False)),
            ],
            options={
                "db_table": "audit_unsealed",
            },
        ),
        migrations.CreateModel(
            name="CustomerKey",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("shop_id", models.BigIntegerField()),
                ("customer", models.CharField(max_length=200)),
                ("wrapped_key", models.BinaryField()),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                ("destroyed_at", models.DateTimeField(null=True)),
            ],
            options={
                "db_table": "audit_customer_key",
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("destroyed_at__isnull", True)),
                        fields=("shop_id", "customer"),
                        name="audit_customer_key_one_live",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("destroyed_at__isnull", True),
                                models.Q(
                                    django.db.models.lookups.Exact(
                                        audit.functions.OctetLength("wrapped_key"), 0
                                    ),
                                    _negated=True,
                                ),
                            ),
                            models.Q(
                                ("destroyed_at__isnull", False),
                                django.db.models.lookups.Exact(
                                    audit.functions.OctetLength("wrapped_key"), 0
                                ),
                            ),
                            _connector="OR",
                        ),
                        name="audit_customer_key_destroyed_is_empty",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="PersonalText",
            fields=[
                (
                    "event",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="personal",
                        serialize=False,
                        to="audit.event",
                    ),
                ),
                ("ciphertext", models.BinaryField()),
            ],
            options={
                "db_table": "audit_personal_text",
            },
        ),
        migrations.AddIndex(
            model_name="event",
            index=models.Index(
                models.F("shop_id"),
                models.OrderBy(models.F("id"), descending=True),
                name="audit_event_shop",
            ),
        ),
        migrations.AddIndex(
            model_name="event",
            index=models.Index(
                condition=models.Q(("task_id__isnull", False)),
                fields=["task_id", "id"],
                name="audit_event_task",
            ),
        ),
        migrations.AddIndex(
            model_name="event",
            index=models.Index(
                condition=models.Q(("ticket_id__isnull", False)),
                fields=["ticket_id", "id"],
                name="audit_event_ticket",
            ),
        ),
        migrations.AddIndex(
            model_name="event",
            index=models.Index(
                condition=models.Q(("order_id", ""), _negated=True),
                fields=["shop_id", "order_id", "id"],
                name="audit_event_order",
            ),
        ),
        migrations.AddIndex(
            model_name="event",
            index=models.Index(
                condition=models.Q(("customer", ""), _negated=True),
                fields=["shop_id", "customer", "id"],
                name="audit_event_customer",
            ),
        ),
        migrations.AddIndex(
            model_name="event",
            index=models.Index(fields=["shop_id", "action", "id"], name="audit_event_action"),
        ),
        migrations.AddConstraint(
            model_name="event",
            constraint=models.CheckConstraint(
                condition=models.Q(("action__regex", "^[a-z][a-z0-9_]*\\.[a-z][a-z0-9_]*$")),
                name="audit_event_action_shape",
            ),
        ),
        migrations.AddConstraint(
            model_name="event",
            constraint=models.CheckConstraint(
                condition=models.Q(("actor__regex", "^[a-z][a-z0-9_.-]*(:.+)?$")),
                name="audit_event_actor_shape",
            ),
        ),
        migrations.AddConstraint(
            model_name="event",
            constraint=models.CheckConstraint(
                condition=models.Q(("subject__regex", "^[a-z][a-z0-9_]*:.+$")),
                name="audit_event_subject_shape",
            ),
        ),
        migrations.AddConstraint(
            model_name="event",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("amount__isnull", True), ("currency", "")),
                    models.Q(("amount__isnull", False), models.Q(("currency", ""), _negated=True)),
                    _connector="OR",
                ),
                name="audit_event_amount_has_currency",
            ),
        ),
        migrations.AddConstraint(
            model_name="event",
            constraint=models.CheckConstraint(
                condition=django.db.models.lookups.Exact(audit.functions.OctetLength("digest"), 32),
                name="audit_event_digest_length",
            ),
        ),
        migrations.AddConstraint(
            model_name="event",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("personal_digest__isnull", True),
                    django.db.models.lookups.Exact(
                        audit.functions.OctetLength("personal_digest"), 32
                    ),
                    _connector="OR",
                ),
                name="audit_event_personal_digest_length",
            ),
        ),
        migrations.AddConstraint(
            model_name="seal",
            constraint=models.CheckConstraint(
                condition=models.Q(("id__gt", 0)), name="audit_seal_number_positive"
            ),
        ),
        migrations.AddConstraint(
            model_name="seal",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("count__gt", 0),
                    django.db.models.lookups.Exact(
                        audit.functions.Cardinality("event_ids"), models.F("count")
                    ),
                    django.db.models.lookups.Exact(
                        audit.functions.OctetLength("leaves"),
                        django.db.models.expressions.CombinedExpression(
                            models.F("count"), "*", models.Value(32)
                        ),
                    ),
                ),
                name="audit_seal_counts_agree",
            ),
        ),
        migrations.AddConstraint(
            model_name="seal",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    django.db.models.lookups.Exact(audit.functions.OctetLength("previous"), 32),
                    django.db.models.lookups.Exact(audit.functions.OctetLength("root"), 32),
                    django.db.models.lookups.Exact(audit.functions.OctetLength("digest"), 32),
                    django.db.models.lookups.Exact(audit.functions.OctetLength("signature"), 64),
                ),
                name="audit_seal_lengths",
            ),
        ),
        migrations.AddField(
            model_name="personaltext",
            name="key",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="audit.customerkey",
            ),
        ),
        migrations.RunSQL(APPEND_ONLY, APPEND_ONLY_REVERSE),
        guard("audit_event"),
        guard("audit_personal_text"),
        guard("audit_seal"),
        migrations.RunSQL(GUARD_KEYS, GUARD_KEYS_REVERSE),
        migrations.RunSQL(OUTBOX, OUTBOX_REVERSE),
    ]
