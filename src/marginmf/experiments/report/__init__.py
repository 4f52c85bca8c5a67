"""The report: what the cells found, as one page of HTML and as Markdown."""

from marginmf.experiments.report.sections import Section, sections_of
from marginmf.experiments.report.writing import Report, write_report

__all__ = ["Report", "Section", "sections_of", "write_report"]
