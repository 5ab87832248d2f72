"""The machinery behind the pages: reads their code blocks, runs them, compares, and says so on the page.

Reading order: fences → programs → host (runs inside the environment under test) → engine → compare → records → pages.
"""
