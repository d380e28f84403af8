"""The checkers find what they are for: each case plants one fault in a small tree and looks for its message."""
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import check_hygiene  # noqa: E402
import check_includes  # noqa: E402
import run_tests  # noqa: E402

TABLE = """--- planning ---
base :
plan : base
--- libtorch ---
comm : base
runtime : base comm
--- commands ---
session : *
"""
CLEAN = {
    "src/base/error.h": "#pragma once\n",
    "src/plan/search.h": '#pragma once\n#include "base/error.h"\n',
    "src/comm/communicator.h": '#pragma once\n#include <ATen/core/Tensor.h>\n#include "base/error.h"\n',
    "src/comm/threads/box.h": "#pragma once\n",
    "src/comm/threads/box.cc": '#include "comm/threads/box.h"\n#include <vector>\n',
    "src/runtime/executor.cc": '#include "comm/communicator.h"\n',
    "src/session/check.cc": '#include "plan/search.h"\n',
    "src/session/run/train.cc": '#include <torch/types.h>\n#include "comm/communicator.h"\n',
}


class Tree(unittest.TestCase):
    def errors(self, checker, planted, table=TABLE):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in {"src/modules.txt": table, **CLEAN, **planted}.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            return checker.check(root)[1]

    def expect(self, checker, planted, message, **kwargs):
        errors = self.errors(checker, planted, **kwargs)
        self.assertEqual(len(errors), 1, errors)
        self.assertIn(message, errors[0])


class Includes(Tree):
    def test_clean_tree(self):
        self.assertEqual(self.errors(check_includes, {}), [])

    def test_module_not_in_the_table(self):
        self.expect(check_includes, {"src/base/x.cc": '#include "plan/search.h"\n'}, "'base' may not include 'plan'")

    def test_reached_through_another_is_not_enough(self):
        table = TABLE.replace("runtime : base comm", "runtime : comm")
        self.expect(check_includes, {"src/runtime/x.cc": '#include "base/error.h"\n'}, "'runtime' may not include 'base'",
                    table=table)

    def test_unknown_module(self):
        self.expect(check_includes, {"src/extra/x.cc": "\n"}, "module 'extra' is not in src/modules.txt")

    def test_libtorch_above_the_line(self):
        for header in ("torch/types.h", "ATen/ATen.h", "c10/core/Device.h"):
            self.expect(check_includes, {"src/plan/x.cc": f"#include <{header}>\n"}, "builds without libtorch")

    def test_libtorch_in_a_command_outside_run(self):
        self.expect(check_includes, {"src/session/x.cc": "#include <torch/types.h>\n"}, "builds without libtorch")
        self.expect(check_includes, {"src/session/x.cc": '#include "comm/communicator.h"\n'}, "needs libtorch")

    def test_torch_torch_anywhere(self):
        for place in ("src/comm/x.cc", "src/plan/x.cc", "tests/comm/x_test.cc", "bench/x.cc"):
            self.expect(check_includes, {place: "#  include <torch/torch.h>\n"}, "torch/torch.h")

    def test_private_folder(self):
        self.expect(check_includes, {"src/runtime/x.cc": '#include "comm/threads/box.h"\n'}, "is private to 'comm'")

    def test_run_folders_of_commands_see_each_other(self):
        table = TABLE + "cli : base session\n"
        planted = {"src/session/run/train.h": "#pragma once\n", "src/cli/run/train.cc": '#include "session/run/train.h"\n'}
        self.assertEqual(self.errors(check_includes, planted, table=table), [])
        self.expect(check_includes, {"src/session/run/train.h": "#pragma once\n",
                                     "src/cli/train.cc": '#include "session/run/train.h"\n'}, "is private", table=table)

    def test_header_that_does_not_exist(self):
        self.expect(check_includes, {"src/base/x.cc": '#include "base/none.h"\n'}, "does not exist")

    def test_header_cycle(self):
        self.expect(check_includes, {"src/base/a.h": '#pragma once\n#include "base/b.h"\n',
                                     "src/base/b.h": '#pragma once\n#include "base/a.h"\n'}, "base/a.h -> base/b.h -> base/a.h")

    def test_table_cycle(self):
        table = TABLE.replace("base :\n", "base : plan\n")
        self.assertTrue(any("'base' may include 'plan', which is not above it" in e
                            for e in self.errors(check_includes, {}, table=table)))

    def test_planning_on_libtorch(self):
        table = TABLE.replace("--- commands ---", "--- planning ---\nreport : comm\n--- commands ---")
        self.assertTrue(any("planning module 'report' depends on libtorch" in e
                            for e in self.errors(check_includes, {}, table=table)))


class Hygiene(Tree):
    def test_clean_tree(self):
        self.assertEqual(self.errors(check_hygiene, {}), [])

    def test_machine_path(self):
        for path in ("/work/main/x", "/root/.cache", "/home/someone/y"):
            self.expect(check_hygiene, {"docs/x.md": f"see {path}\n"}, "a path of one machine")
        self.assertEqual(self.errors(check_hygiene, {"docs/x.md": "framework/x $HOME/root/ a/work/b\n"}), [])

    def test_unfinished_work(self):
        for mark in ("TODO", "FIXME", "XXX"):
            self.expect(check_hygiene, {"src/base/x.cc": f"// {mark}: later\n"}, "unfinished work")
        self.assertEqual(self.errors(check_hygiene, {"src/base/x.cc": 'mkstemp("aXXXXXX");\n'}), [])

    def test_merge_marks(self):
        for mark in ["<" * 7 + " HEAD", "=" * 7, ">" * 7 + " f403d8b"]:
            self.expect(check_hygiene, {"docs/x.md": f"a\n{mark}\nb\n"}, "a merge that was left half done")
        self.assertEqual(self.errors(check_hygiene, {"docs/x.md": "a\n" + "=" * 8 + "\n<<<<<<< x<y\n".replace("<<<<<<< ", "<< ")}), [])

    def test_switched_off_test(self):
        self.expect(check_hygiene, {"tests/base/x_test.cc": "TEST(A, DISABLED_B) {}\n"}, "switched off")

    def test_guard_and_newline(self):
        self.expect(check_hygiene, {"src/base/x.h": "int x;\n"}, "#pragma once")
        self.expect(check_hygiene, {"src/base/x.cc": "int x;"}, "no newline")


class Counting(unittest.TestCase):
    def test_cases_failures_and_the_reasons_of_skips(self):
        report = """<testsuites><testsuite>
          <testcase name="a" status="run" result="completed"/>
          <testcase name="b" status="run" result="completed"><failure message="x"/></testcase>
          <testcase name="c" status="run" result="skipped"><skipped message="t.cc:3&#x0A;no GPU here"/></testcase>
          <testcase name="d" status="notrun" result="suppressed"/>
        </testsuite></testsuites>"""
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "x_test.xml").write_text(report)
            self.assertEqual(run_tests.count(pathlib.Path(folder)), (3, 1, {"no GPU here": 1}))


if __name__ == "__main__":
    unittest.main()
