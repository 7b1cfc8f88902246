// Talk to the server of this page: JSON both ways, and server-sent events.
// A failure is an ApiError whose message says what to do.

const OFFLINE =
  "The inspector does not answer. Check that 'hookline inspect' is still running.";
const RETRY_MS = 2000;

export class ApiError extends Error {
  constructor(message, status) {
    super(message);
    this.name = "ApiError";
    this.status = status;
    this.offline = status === 0;
  }
}

// The address of a path with its parameters; empty values are left out.
export function address(path, params = {}) {
  const given = Object.entries(params).filter(
    ([, value]) => value !== null && value !== undefined && value !== "",
  );
  const query = new URLSearchParams(given).toString();
  return query ? `${path}?${query}` : path;
}

export function get(path, params = {}, signal = undefined) {
  return ask(address(path, params), { signal });
}

export function post(path, body = {}, signal = undefined) {
  return ask(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
    signal,
  });
}

async function ask(url, options) {
  let response;
  try {
    response = await fetch(url, { credentials: "same-origin", ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(OFFLINE, 0);
  }
  const answer = parsed(await response.text());
  if (response.ok && answer !== null) return answer;
  if (options.signal?.aborted) throw new DOMException("", "AbortError");
  const fallback = `The server answered with status ${response.status}.`;
  throw new ApiError(answer?.error?.message ?? fallback, response.status);
}

// Listen to server-sent events until the signal aborts, and reconnect if needed.
// `handlers` has a function (data, id) for each kind of event; `open()` and
// `lost()` tell of the connection.
export function stream(path, params, handlers, signal) {
  let source = null;
  let lastId = null;
  let timer = null;

  function connect() {
    const again = lastId === null ? params : { ...params, after: lastId };
    source = new EventSource(address(path, again));
    source.onopen = () => handlers.open?.();
    source.onerror = () => {
      if (signal?.aborted) return;
      // The browser's own retry gives up after an error status: always use ours.
      source.close();
      handlers.lost?.();
      timer = setTimeout(connect, RETRY_MS);
    };
    for (const [kind, handle] of Object.entries(handlers)) {
      if (kind === "open" || kind === "lost") continue;
      source.addEventListener(kind, (message) => {
        if (message.lastEventId) lastId = message.lastEventId;
        handle(parsed(message.data), message.lastEventId);
      });
    }
  }

  function close() {
    clearTimeout(timer);
    source?.close();
  }

  // A browser has six connections for one server: a page that nobody sees needs none.
  function pause() {
    close();
    if (!document.hidden) connect();
  }

  function stop() {
    document.removeEventListener("visibilitychange", pause);
    close();
  }

  if (signal?.aborted) return stop;
  signal?.addEventListener("abort", stop, { once: true });
  // Only where it can go on after the last event.
  if ("after" in params) document.addEventListener("visibilitychange", pause);
  connect();
  return stop;
}

function parsed(text) {
  try {
    // Looking at each value is slow, and such numbers are rare.
    return /\d{16}/.test(text) ? JSON.parse(text, exact) : JSON.parse(text);
  } catch {
    return null;
  }
}

// Whole numbers that JavaScript would round stay as they were written, where the
// browser can do that: `rawJSON` holds the digits, and `JSON.stringify` writes them.
// Times and durations have a point or an exponent, so that they are always numbers.
function exact(_, value, context) {
  const isRounded = Number.isInteger(value) && !Number.isSafeInteger(value);
  const source = isRounded ? context?.source ?? "" : "";
  return /^-?\d+$/.test(source) && JSON.rawJSON ? JSON.rawJSON(source) : value;
}
