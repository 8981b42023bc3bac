"""Money is loosened by two people, whoever writes the row: the admin site, a shell, a service."""

import django.db.models.deletion
import django_fsm
from django.db import migrations, models

FORWARD = """
CREATE FUNCTION accounts_shop_change_admin(person bigint, shop bigint, since timestamptz)
RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT EXISTS (SELECT 1 FROM accounts_user u
                 WHERE u.id = person AND u.is_active AND u.role = 'admin'
                   AND (u.shop_id IS NULL OR u.shop_id = shop) AND u.date_joined <= since)
$$;

CREATE FUNCTION accounts_shop_change_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' THEN
    RAISE EXCEPTION 'changes of settings are never deleted' USING ERRCODE = 'restrict_violation';
  END IF;
  IF TG_OP = 'INSERT' THEN
    IF NEW.status <> 'open' OR NEW.applied_at IS NOT NULL THEN
      RAISE EXCEPTION 'a change begins by being proposed' USING ERRCODE = 'restrict_violation';
    END IF;
    IF NOT accounts_shop_change_admin(NEW.proposed_by_user_id, NEW.shop_id, clock_timestamp()) THEN
      RAISE EXCEPTION 'an admin of the shop proposes' USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
  END IF;
  IF (NEW.shop_id, NEW.setting, NEW.old_value, NEW.new_value, NEW.reason, NEW.proposed_by,
      NEW.proposed_by_user_id, NEW.proposed_at, NEW.expires_at)
     IS DISTINCT FROM
     (OLD.shop_id, OLD.setting, OLD.old_value, OLD.new_value, OLD.reason, OLD.proposed_by,
      OLD.proposed_by_user_id, OLD.proposed_at, OLD.expires_at) THEN
    RAISE EXCEPTION 'what a change says never changes' USING ERRCODE = 'restrict_violation';
  END IF;
  IF OLD.status <> 'open' THEN
    IF (NEW.status, NEW.ended_by, NEW.ended_by_user_id, NEW.ended_at, NEW.note)
       IS DISTINCT FROM (OLD.status, OLD.ended_by, OLD.ended_by_user_id, OLD.ended_at, OLD.note)
       OR OLD.applied_at IS NOT NULL OR pg_trigger_depth() < 2 THEN
      RAISE EXCEPTION 'a change ends once' USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
  END IF;
  IF NEW.applied_at IS NOT NULL THEN
    RAISE EXCEPTION 'a change is applied by its shop' USING ERRCODE = 'restrict_violation';
  END IF;
  IF NEW.status = 'confirmed' THEN
    IF clock_timestamp() >= OLD.expires_at THEN
      RAISE EXCEPTION 'the time to confirm is over' USING ERRCODE = 'restrict_violation';
    END IF;
    -- Somebody who was there before it was proposed, so that nobody makes their own second person.
    IF NOT accounts_shop_change_admin(NEW.ended_by_user_id, NEW.shop_id, OLD.proposed_at) THEN
      RAISE EXCEPTION 'an admin of the shop confirms' USING ERRCODE = 'restrict_violation';
    END IF;
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER accounts_shop_change_guard BEFORE INSERT OR UPDATE OR DELETE ON accounts_shopchange
  FOR EACH ROW EXECUTE FUNCTION accounts_shop_change_guard();

CREATE FUNCTION accounts_shop_two_people() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  was jsonb := to_jsonb(OLD);
  becomes jsonb := to_jsonb(NEW);
  looser text[] := ARRAY[]::text[];
  name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['staff_limit', 'refund_window_days', 'customer_approval_seconds',
      'staff_approval_seconds', 'max_tokens', 'max_cost', 'customer_day_max_tokens',
      'customer_day_max_cost', 'shop_day_max_tokens', 'shop_day_max_cost'] LOOP
    IF (becomes ->> name)::numeric > (was ->> name)::numeric THEN looser := looser || name; END IF;
  END LOOP;
  IF OLD.staff_also_for_cancel AND NOT NEW.staff_also_for_cancel THEN
    looser := looser || 'staff_also_for_cancel'::text;
  END IF;
  IF NOT NEW.countries_served <@ OLD.countries_served THEN
    looser := looser || 'countries_served'::text;
  END IF;
  IF NEW.currency <> OLD.currency THEN looser := looser || 'currency'::text; END IF;
  FOREACH name IN ARRAY looser LOOP
    UPDATE accounts_shopchange SET applied_at = clock_timestamp()
      WHERE shop_id = NEW.id AND setting = name AND status = 'confirmed' AND applied_at IS NULL
        AND old_value = was -> name AND new_value = becomes -> name;
    IF NOT FOUND THEN
      RAISE EXCEPTION 'loosening % of shop % takes two people', name, NEW.slug
        USING ERRCODE = 'restrict_violation';
    END IF;
  END LOOP;
  RETURN NEW;
END $$;
CREATE TRIGGER accounts_shop_two_people BEFORE UPDATE ON accounts_shop
  FOR EACH ROW EXECUTE FUNCTION accounts_shop_two_people();
"""

REVERSE = """
DROP TRIGGER accounts_shop_two_people ON accounts_shop;
DROP FUNCTION accounts_shop_two_people();
DROP TRIGGER accounts_shop_change_guard ON accounts_shopchange;
DROP FUNCTION accounts_shop_change_guard();
DROP FUNCTION accounts_shop_change_admin(bigint, bigint, timestamptz);
"""


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0007_max_running_tasks"),
    ]

    operations = [
        migrations.CreateModel(
            name="ShopChange",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("setting", models.CharField(max_length=60)),
                ("old_value", models.JSONField()),
                ("new_value", models.JSONField()),
                ("reason", models.CharField(max_length=500)),
                (
                    "status",
                    django_fsm.FSMField(
                        choices=[
                            ("open", "Open"),
                            ("confirmed", "Confirmed"),
                            ("turned_down", "Turned Down"),
                            ("superseded", "Superseded"),
                            ("expired", "Expired"),
                        ],
                        default="open",
                        max_length=20,
                        protected=True,
                    ),
                ),
                ("proposed_by", models.CharField(max_length=200)),
                ("proposed_by_user_id", models.BigIntegerField()),
                ("proposed_at", models.DateTimeField()),
                ("expires_at", models.DateTimeField()),
                ("ended_by", models.CharField(blank=True, max_length=200)),
                ("ended_by_user_id", models.BigIntegerField(null=True)),
                ("ended_at", models.DateTimeField(null=True)),
                ("note", models.CharField(blank=True, max_length=500)),
                ("applied_at", models.DateTimeField(null=True)),
                (
                    "shop",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="changes",
                        to="accounts.shop",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "status__in",
                                ["open", "confirmed", "turned_down", "superseded", "expired"],
                            )
                        ),
                        name="shop_change_status_valid",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("status", "open")),
                        fields=("shop", "setting"),
                        name="shop_change_one_open_per_setting",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("status", "confirmed"), _negated=True),
                            models.Q(
                                ("ended_by_user_id__isnull", False),
                                models.Q(
                                    ("ended_by_user_id", models.F("proposed_by_user_id")),
                                    _negated=True,
                                ),
                                models.Q(("ended_by", models.F("proposed_by")), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="shop_change_confirmed_by_another",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("ended_at__isnull", True), ("ended_by", ""), ("status", "open")
                            ),
                            models.Q(
                                models.Q(("status", "open"), _negated=True),
                                models.Q(("ended_by", ""), _negated=True),
                                ("ended_at__isnull", False),
                            ),
                            _connector="OR",
                        ),
                        name="shop_change_ended_by_whom_and_when",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("applied_at__isnull", True), ("status", "confirmed"), _connector="OR"
                        ),
                        name="shop_change_applied_once_confirmed",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("reason", ""), _negated=True),
                        name="shop_change_has_reason",
                    ),
                ],
            },
        ),
        migrations.RunSQL(FORWARD, REVERSE),
    ]
