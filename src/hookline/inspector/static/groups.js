// Arrange events by session, turn and tool call. Rows come newest first, and stay so
// inside each group; the two events of a tool call stand together.

const OUTSIDE_TURNS = new Set(["SessionStart", "SessionEnd"]);
const ENDED = new Set(["blocked", "stopped"]);

// The items of the list: {kind: "event" | "session" | "turn", key, ...}.
export function arrange(rows, isGrouped, closed) {
  if (!isGrouped) return rows.map((row) => eventItem(row, 0));
  const items = [];
  for (const [session, own] of bySession(rows)) {
    const key = `session ${session}`;
    const isOpen = !closed.has(key);
    items.push({ kind: "session", key, session, isOpen, rows: own });
    if (isOpen) pushTurns(items, own, closed);
  }
  return items;
}

function bySession(rows) {
  const sessions = new Map();
  for (const row of rows) {
    const known = sessions.get(row.session);
    if (known) known.push(row);
    else sessions.set(row.session, [row]);
  }
  return sessions;
}

function pushTurns(items, rows, closed) {
  const turns = turnsOf(rows);
  const befores = pairedCalls(rows);
  let open = null;
  for (const row of rows) {
    const turn = turns.get(row);
    if (turn === null) open = null;
    else if (turn !== open?.turn) open = pushTurn(items, turn, closed);
    if (open) open.rows.push(row);
    if (open && !open.isOpen) continue;
    pushCall(items, row, befores, open ? 2 : 1);
  }
}

function pushTurn(items, turn, closed) {
  const key = `turn ${turn}`;
  const item = { kind: "turn", key, turn, isOpen: !closed.has(key), rows: [] };
  items.push(item);
  return item;
}

// The turn of each row: the id of the BeforeAgent that began it, or null.
function turnsOf(rows) {
  const turns = new Map();
  let current = null;
  for (let n = rows.length - 1; n >= 0; n -= 1) {
    const row = rows[n];
    if (row.event === "BeforeAgent") current = row.id;
    if (OUTSIDE_TURNS.has(row.event)) current = null;
    turns.set(row, OUTSIDE_TURNS.has(row.event) ? null : row.turn ?? current);
  }
  return turns;
}

// The BeforeTool of each AfterTool, where both are there.
function pairedCalls(rows) {
  const waiting = new Map();
  const befores = new Map();
  for (let n = rows.length - 1; n >= 0; n -= 1) {
    const row = rows[n];
    const call = row.tool_use_id ?? `of ${row.target}`;
    if (row.event === "BeforeTool" && !ENDED.has(row.verdict)) {
      waiting.set(call, [...(waiting.get(call) ?? []), row]);
    } else if (row.event === "AfterTool") {
      const before = waiting.get(call)?.shift();
      if (before) befores.set(row, before);
    } else if (row.event === "BeforeAgent") {
      waiting.clear();
    }
  }
  return befores;
}

function pushCall(items, row, befores, depth) {
  const before = befores.get(row);
  if (before) {
    befores.set(before, null);
    items.push(eventItem(row, depth, "after"), eventItem(before, depth, "before"));
  } else if (!befores.has(row)) {
    items.push(eventItem(row, depth));
  }
}

function eventItem(row, depth, call = null) {
  return { kind: "event", key: `event ${row.id}`, row, depth, call };
}
