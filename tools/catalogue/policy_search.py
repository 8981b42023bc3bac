"""search_policy: passages of the shop's documents that are in force today."""

import re
from datetime import date
from typing import Any

from django.contrib.postgres.search import SearchQuery, SearchRank
from django.db.models import F, Q
from pydantic import Field

from accounts.models import Shop
from tools.catalogue.base import Arguments, DocumentTool
from tools.models import PolicyPassage
from tools.text import clean

PASSAGES = 3


class SearchPolicy(Arguments):
    question: str = Field(min_length=1, max_length=300)


def _search(arguments: SearchPolicy, shop: Shop, today: date) -> dict[str, Any]:
    in_force = Q(document__effective_from__lte=today) & (
        Q(document__effective_to__isnull=True) | Q(document__effective_to__gt=today)
    )
    passages = PolicyPassage.objects.filter(in_force, document__shop=shop)
    found = list(_ranked(passages, arguments.question))
    return {
        "passages": [
            {
                "document": clean(passage.document.title, 200),
                "version": str(passage.document.version),
                "effective_from": passage.document.effective_from.isoformat(),
                "heading": clean(passage.heading, 200),
                "text": clean(passage.text, 1500),
            }
            for passage in found
        ],
    }


def _ranked(passages: Any, question: str) -> Any:
    """Best first. All words must match; when no passage has them all, any word will do."""
    every_word = SearchQuery(question, config="english", search_type="plain")
    words = re.findall(r"\w+", question)
    any_word = SearchQuery(" or ".join(words), config="english", search_type="websearch")
    for query in (every_word, any_word):
        found = (
            passages.filter(search=query)
            .annotate(rank=SearchRank(F("search"), query))
            .select_related("document")
            .order_by("-rank", "document_id", "n")[:PASSAGES]
        )
        if found:
            return found
    return []


SEARCH_POLICY = DocumentTool(
    name="search_policy",
    description=(
        "Search the shop's policy documents in force today. Name document, version and date when "
        "you answer from a passage; say so when nothing was found."
    ),
    arguments=SearchPolicy,
    permission="policy:read",
    calls_per_minute=30,
    read=_search,
)
