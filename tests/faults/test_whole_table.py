"""docs/reliability.md is what these tests write. This file is collected last."""

import fault_table


def test_the_document_is_what_its_rows_give():
    text = fault_table.DOCUMENT.read_text()
    rows = fault_table.rows_in(text)
    assert tuple(rows) == fault_table.FAULTS
    assert text == fault_table.document(text, rows), fault_table.REGENERATE


def test_every_row_is_of_a_test(request, recorded):
    """When all of them ran, each fault was seen in this session; `tell` has compared the rows one by one."""
    own = [item for item in request.session.items if item.path.parent == request.path.parent]
    here = {item.path.name for item in own}
    if request.config.option.markexpr or request.config.option.keyword:
        return
    if here == {path.name for path in request.path.parent.glob("test_*.py")} and not request.session.testsfailed:
        assert set(recorded) == set(fault_table.FAULTS)
