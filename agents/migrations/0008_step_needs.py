from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("agents", "0007_casework"),
    ]

    operations = [
        migrations.AddField(
            model_name="step",
            name="needs",
            field=models.CharField(blank=True, db_default="", default="", max_length=200),
        ),
    ]
