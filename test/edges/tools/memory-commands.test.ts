import { expect, it } from "vitest";
import { tool as logActivity } from "../../../src/edges/tools/log-activity.ts";
import { tool as remember } from "../../../src/edges/tools/remember.ts";
import { tool as search } from "../../../src/edges/tools/semantic-search.ts";
import { tool as setFact } from "../../../src/edges/tools/set-fact.ts";
import { tool as updateStatus } from "../../../src/edges/tools/update-status.ts";
import { readCommandLine } from "../../../src/engine/operations/command-line.ts";

it.each([
  [setFact, "language Danish", { key: "language", value: "Danish" }],
  [setFact, 'birthday "3 May"', { key: "birthday", value: "3 May" }],
  [setFact, 'language ""', { key: "language", value: "" }],
  [updateStatus, '"Outline the post" "Write it"', { new_status_text: "Outline the post", next_step: "Write it" }],
  [
    updateStatus,
    '"Book the hall" "Call again on Monday" --blockers "No answer"',
    { new_status_text: "Book the hall", next_step: "Call again on Monday", blockers: "No answer" },
  ],
  [remember, "the office closes at six --shareable", { content: "the office closes at six", shareable: true }],
  [
    search,
    "the offer --user @bob:example.org --from 2026-03-01",
    { query: "the offer", user: "@bob:example.org", from: "2026-03-01" },
  ],
])("the command of $command reads %s", (tool, line, values) => {
  expect(readCommandLine(tool as typeof search, line)).toMatchObject(values);
});

it.each([
  [remember, '"   "', "content"],
  [remember, "“ ”", "content"],
  [logActivity, 'THOUGHT " "', "content"],
  [updateStatus, '" " next', "new_status_text"],
  [updateStatus, 'goal ""', "next_step"],
  [search, '" "', "query"],
])("the command of $command refuses %s, which says nothing", (tool, line, field) => {
  expect(() => readCommandLine(tool as typeof search, line)).toThrow(field);
});
