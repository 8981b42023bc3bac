from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("tools", "0008_settlement_guards")]
    operations = [
        migrations.AddField(
            model_name="operation",
            name="not_before",
            field=models.DateTimeField(null=True),
        ),
    ]
