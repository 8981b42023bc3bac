/* What survives a change of page: in this tab, and what was seen beyond it. Where storage is refused,
   nothing does. */

const PREFIX = "countersign:";
const LASTING = /^seen-/;

const storeOf = (name) => (LASTING.test(name) ? localStorage : sessionStorage);

export function recall(name) {
  try {
    return JSON.parse(storeOf(name).getItem(PREFIX + name));
  } catch {
    return null;
  }
}

export function keep(name, value) {
  try {
    if (value === null) storeOf(name).removeItem(PREFIX + name);
    else storeOf(name).setItem(PREFIX + name, JSON.stringify(value));
  } catch { /* nothing is kept then */ }
}

export function forget() {
  try {
    for (const store of [sessionStorage, localStorage]) {
      for (const name of Object.keys(store)) {
        if (name.startsWith(PREFIX)) store.removeItem(name);
      }
    }
  } catch { /* nothing was kept */ }
}
