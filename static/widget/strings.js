/* What the widget says, in the languages it speaks. A missing text would show its name. */

const en = {
  assistant: "Assistant",
  colleague: "Support team",
  conversations: "Conversations",
  conversation: "Conversation",
  messages: "Messages",
  close: "Close chat",
  newConversation: "New conversation",
  newMessages: "New messages",
  yourMessage: "Your message",
  writeMessage: "Write a message…",
  send: "Send",
  stop: "Stop",
  stopping: "Stopping…",
  person: "Talk to a person",
  you: "You",
  disclosure:
    "You are talking to {shop}'s AI assistant. It can look things up and prepare changes, " +
    "but nothing about your order changes before you say yes.",
  demoModel: "No language model is attached: answers come from built-in rules.",
  signIn: "Please sign in to {shop} to chat about your orders.",
  signInAgain: "Your sign-in has ended. Please sign in to {shop} again.",
  notEmbedded: "This chat opens inside a shop's page.",
  connecting: "Connecting…",
  reconnecting: "Connection lost. Reconnecting…",
  offline: "You are offline. Your messages will be sent once you are back.",
  tooManyWindows: "This chat is open in too many windows. Please close one.",
  withPerson: "With a colleague",
  closedNote: "This conversation is closed. A new message starts a new one.",
  showEarlier: "Show earlier messages",
  noConversations: "No conversations yet.",
  open: "open",
  closed: "closed",
  sending: "Sending…",
  notSent: "Not sent.",
  retry: "Try again",
  left: "{count} characters left",
  waitsForStaffHint:
    "The assistant reads this once the colleague has decided. For something else, start a new conversation.",
  idea1: "Where is my order?",
  idea2: "Something arrived broken",
  idea3: "Change my delivery address",

  needs: "What do you need?",
  assistantAway: "The assistant can't be reached at the moment. You can still do this yourself:",
  form_find_orders: "Where is my order?",
  form_refund_order: "Get a refund",
  form_cancel_order: "Cancel an order",
  form_change_address: "Change a delivery address",
  backToChoices: "Back",
  closeForm: "Close",
  formLookUp: "Look it up",
  formGoOn: "Continue",
  formNothingYet: "You will see exactly what would be done before anything happens.",
  orderNumber: "Order number",
  orderNumberHint: "Leave it empty to see all your orders.",
  amountHint: "Leave it empty for everything that is left to refund.",
  optional: "optional",
  pleaseChoose: "Please choose",
  fieldNeeded: "Please fill this in.",
  fieldWrong: "Please look at this again.",
  reason_damaged: "It arrived damaged",
  reason_not_received: "It did not arrive",
  reason_wrong_item: "It is the wrong item",
  reason_not_as_described: "It is not as described",
  reason_changed_mind: "I changed my mind",
  reason_no_longer_needed: "I no longer need it",
  reason_ordered_by_mistake: "I ordered it by mistake",
  reason_other: "Something else",
  addressName: "Name",
  addressLine1: "Street and number",
  addressLine2: "Apartment, floor",
  addressPostalCode: "Postal code",
  addressCity: "City",
  addressRegion: "State",
  addressCountry: "Country",
  addressCountryHint: "Two letters, like US or DE.",

  thinking: "Thinking…",
  doneSteps: "What was done ({count})",
  find_orders: "Looking up your orders…",
  find_orders_about: "Looking up order {order}…",
  find_orders_done: "Looked up your orders",
  find_orders_about_done: "Looked up order {order}",
  track_parcel: "Tracking your parcel…",
  track_parcel_about: "Tracking the parcel of order {order}…",
  track_parcel_done: "Tracked your parcel",
  track_parcel_about_done: "Tracked the parcel of order {order}",
  search_policy: "Reading the shop's policy…",
  search_policy_done: "Read the shop's policy",
  refund_order: "Preparing a refund…",
  refund_order_about: "Preparing a refund for order {order}…",
  refund_order_done: "Refund",
  refund_order_about_done: "Refund for order {order}",
  cancel_order: "Preparing a cancellation…",
  cancel_order_about: "Preparing to cancel order {order}…",
  cancel_order_done: "Cancellation",
  cancel_order_about_done: "Cancellation of order {order}",
  change_address: "Preparing an address change…",
  change_address_about: "Preparing an address change for order {order}…",
  change_address_done: "Address change",
  change_address_about_done: "Address change for order {order}",
  close_ticket: "Preparing to close this conversation…",
  close_ticket_done: "Closing this conversation",
  hand_off: "Passing this to a colleague…",
  hand_off_done: "Passed to a colleague",
  other: "Working…",
  other_done: "Another step",
  stepNotDone: "not done",
  stepNotFound: "nothing found",
  waitsForYou: "Waiting for your yes",
  waitsForStaff: "A colleague is looking at this",
  waitsForShop: "Still being checked with the shop",
  waitsForModel: "The assistant is busy; trying again shortly…",
  beingSent: "Sending it to the shop…",

  pleaseConfirm: "Please confirm",
  from: "From",
  to: "To",
  reason: "Reason",
  answerBy: "Answer by {time}",
  alsoStaff: "A colleague must agree too",
  nothingYet: "Nothing happens until you say yes.",
  yes: "Yes, go ahead",
  no: "No",
  takeBack: "Take back my yes",
  answering: "Sending your answer…",
  saidYes: "You said yes",
  saidNo: "You said no. Nothing was changed.",
  staffSaidNo: "A colleague said no. Nothing was changed.",
  expired: "The time to answer is over. Nothing was changed.",
  superseded: "The order has changed meanwhile. Nothing was done.",
  withdrawn: "Withdrawn. Nothing was changed.",
  shopRefused: "The shop did not accept this.",
  needsPerson: "A colleague is checking this with the shop.",
  done: "Done",

  receipt_refund: "Refund made",
  receipt_cancel: "Order cancelled",
  receipt_change_address: "Address changed",
  receipt_close_ticket: "Conversation closed",
  receipt_other: "Done",
  order: "Order",
  amount: "Amount",
  reference: "Reference",
  when: "When",
};

const de = {
  assistant: "Assistent",
  colleague: "Kundendienst",
  conversations: "Unterhaltungen",
  conversation: "Unterhaltung",
  messages: "Nachrichten",
  close: "Chat schließen",
  newConversation: "Neue Unterhaltung",
  newMessages: "Neue Nachrichten",
  yourMessage: "Ihre Nachricht",
  writeMessage: "Nachricht schreiben…",
  send: "Senden",
  stop: "Anhalten",
  stopping: "Wird angehalten…",
  person: "Mit einem Menschen sprechen",
  you: "Sie",
  disclosure:
    "Sie sprechen mit dem KI-Assistenten von {shop}. Er kann nachsehen und Änderungen vorbereiten, " +
    "aber an Ihrer Bestellung ändert sich nichts, bevor Sie Ja sagen.",
  demoModel: "Es ist kein Sprachmodell angeschlossen: Antworten kommen aus eingebauten Regeln.",
  signIn: "Bitte melden Sie sich bei {shop} an, um über Ihre Bestellungen zu sprechen.",
  signInAgain: "Ihre Anmeldung ist abgelaufen. Bitte melden Sie sich erneut bei {shop} an.",
  notEmbedded: "Dieser Chat öffnet sich auf der Seite eines Shops.",
  connecting: "Verbindung wird aufgebaut…",
  reconnecting: "Verbindung unterbrochen. Neuer Versuch…",
  offline: "Sie sind offline. Ihre Nachrichten werden gesendet, sobald Sie wieder online sind.",
  tooManyWindows: "Dieser Chat ist in zu vielen Fenstern offen. Bitte schließen Sie eines.",
  withPerson: "Mit einer Kollegin oder einem Kollegen",
  closedNote: "Diese Unterhaltung ist beendet. Eine neue Nachricht beginnt eine neue.",
  showEarlier: "Frühere Nachrichten zeigen",
  noConversations: "Noch keine Unterhaltungen.",
  open: "offen",
  closed: "beendet",
  sending: "Wird gesendet…",
  notSent: "Nicht gesendet.",
  retry: "Erneut versuchen",
  left: "Noch {count} Zeichen",
  waitsForStaffHint:
    "Der Assistent liest das, sobald entschieden ist. Für etwas anderes beginnen Sie eine neue Unterhaltung.",
  idea1: "Wo ist meine Bestellung?",
  idea2: "Etwas kam beschädigt an",
  idea3: "Meine Lieferadresse ändern",

  needs: "Was brauchen Sie?",
  assistantAway: "Der Assistent ist gerade nicht zu erreichen. Das können Sie trotzdem selbst tun:",
  form_find_orders: "Wo ist meine Bestellung?",
  form_refund_order: "Geld zurückbekommen",
  form_cancel_order: "Eine Bestellung stornieren",
  form_change_address: "Eine Lieferadresse ändern",
  backToChoices: "Zurück",
  closeForm: "Schließen",
  formLookUp: "Nachsehen",
  formGoOn: "Weiter",
  formNothingYet: "Sie sehen erst genau, was getan würde, bevor etwas geschieht.",
  orderNumber: "Bestellnummer",
  orderNumberHint: "Leer lassen, um alle Ihre Bestellungen zu sehen.",
  amountHint: "Leer lassen für alles, was noch erstattet werden kann.",
  optional: "optional",
  pleaseChoose: "Bitte wählen",
  fieldNeeded: "Bitte ausfüllen.",
  fieldWrong: "Bitte noch einmal ansehen.",
  reason_damaged: "Es kam beschädigt an",
  reason_not_received: "Es kam nicht an",
  reason_wrong_item: "Es ist der falsche Artikel",
  reason_not_as_described: "Es ist nicht wie beschrieben",
  reason_changed_mind: "Ich habe es mir anders überlegt",
  reason_no_longer_needed: "Ich brauche es nicht mehr",
  reason_ordered_by_mistake: "Ich habe es versehentlich bestellt",
  reason_other: "Etwas anderes",
  addressName: "Name",
  addressLine1: "Straße und Hausnummer",
  addressLine2: "Wohnung, Stockwerk",
  addressPostalCode: "Postleitzahl",
  addressCity: "Ort",
  addressRegion: "Region",
  addressCountry: "Land",
  addressCountryHint: "Zwei Buchstaben, wie US oder DE.",

  thinking: "Denkt nach…",
  doneSteps: "Was getan wurde ({count})",
  find_orders: "Ihre Bestellungen werden nachgesehen…",
  find_orders_about: "Bestellung {order} wird nachgesehen…",
  find_orders_done: "Ihre Bestellungen nachgesehen",
  find_orders_about_done: "Bestellung {order} nachgesehen",
  track_parcel: "Ihr Paket wird verfolgt…",
  track_parcel_about: "Das Paket zu Bestellung {order} wird verfolgt…",
  track_parcel_done: "Paket verfolgt",
  track_parcel_about_done: "Paket zu Bestellung {order} verfolgt",
  search_policy: "Die Bedingungen des Shops werden gelesen…",
  search_policy_done: "Bedingungen des Shops gelesen",
  refund_order: "Eine Erstattung wird vorbereitet…",
  refund_order_about: "Eine Erstattung zu Bestellung {order} wird vorbereitet…",
  refund_order_done: "Erstattung",
  refund_order_about_done: "Erstattung zu Bestellung {order}",
  cancel_order: "Eine Stornierung wird vorbereitet…",
  cancel_order_about: "Die Stornierung von Bestellung {order} wird vorbereitet…",
  cancel_order_done: "Stornierung",
  cancel_order_about_done: "Stornierung von Bestellung {order}",
  change_address: "Eine Adressänderung wird vorbereitet…",
  change_address_about: "Eine Adressänderung zu Bestellung {order} wird vorbereitet…",
  change_address_done: "Adressänderung",
  change_address_about_done: "Adressänderung zu Bestellung {order}",
  close_ticket: "Das Ende der Unterhaltung wird vorbereitet…",
  close_ticket_done: "Ende der Unterhaltung",
  hand_off: "Wird an das Team übergeben…",
  hand_off_done: "An das Team übergeben",
  other: "In Arbeit…",
  other_done: "Ein weiterer Schritt",
  stepNotDone: "nicht ausgeführt",
  stepNotFound: "nichts gefunden",
  waitsForYou: "Wartet auf Ihr Ja",
  waitsForStaff: "Jemand aus dem Team sieht sich das an",
  waitsForShop: "Wird noch mit dem Shop geklärt",
  waitsForModel: "Der Assistent ist ausgelastet; gleich ein neuer Versuch…",
  beingSent: "Wird an den Shop gesendet…",

  pleaseConfirm: "Bitte bestätigen",
  from: "Von",
  to: "Nach",
  reason: "Grund",
  answerBy: "Antwort bis {time}",
  alsoStaff: "Auch jemand aus dem Team muss zustimmen",
  nothingYet: "Es geschieht nichts, bevor Sie Ja sagen.",
  yes: "Ja, bitte",
  no: "Nein",
  takeBack: "Mein Ja zurücknehmen",
  answering: "Ihre Antwort wird gesendet…",
  saidYes: "Sie haben Ja gesagt",
  saidNo: "Sie haben Nein gesagt. Es wurde nichts geändert.",
  staffSaidNo: "Das Team hat abgelehnt. Es wurde nichts geändert.",
  expired: "Die Zeit zum Antworten ist um. Es wurde nichts geändert.",
  superseded: "Die Bestellung hat sich inzwischen geändert. Es wurde nichts getan.",
  withdrawn: "Zurückgezogen. Es wurde nichts geändert.",
  shopRefused: "Der Shop hat das nicht angenommen.",
  needsPerson: "Jemand aus dem Team klärt das mit dem Shop.",
  done: "Erledigt",

  receipt_refund: "Erstattet",
  receipt_cancel: "Bestellung storniert",
  receipt_change_address: "Adresse geändert",
  receipt_close_ticket: "Unterhaltung beendet",
  receipt_other: "Erledigt",
  order: "Bestellung",
  amount: "Betrag",
  reference: "Beleg",
  when: "Wann",
};

export const LANGUAGES = { en, de };

let texts = en;
let locale = "en";

/* Speak the language of a locale if we can, else English. Returns the language spoken. */
export function speak(wanted) {
  const language = String(wanted || "").toLowerCase().split(/[-_]/)[0];
  const known = Object.hasOwn(LANGUAGES, language) ? language : "en";
  texts = LANGUAGES[known];
  locale = known === language ? usable(wanted) : "en";
  return known;
}

function usable(wanted) {
  try {
    return Intl.getCanonicalLocales(String(wanted).replace("_", "-"))[0];
  } catch {
    return "en";
  }
}

/* The locale that is spoken, as a language tag. */
export function tag() {
  return locale;
}

export function has(name) {
  return Object.hasOwn(texts, name);
}

export function t(name, values = {}) {
  const text = Object.hasOwn(texts, name) ? texts[name] : name;
  return text.replace(/\{(\w+)\}/g, (_, key) => String(values[key] ?? ""));
}

export function clock(when) {
  return new Intl.DateTimeFormat(locale, { hour: "numeric", minute: "2-digit" }).format(new Date(when));
}

/* The time alone for today, else with its day. */
export function moment(when) {
  const date = new Date(when);
  if (date.toDateString() === new Date().toDateString()) return clock(when);
  return new Intl.DateTimeFormat(locale, { day: "numeric", month: "short", hour: "numeric", minute: "2-digit" })
    .format(date);
}
