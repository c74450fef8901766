import type { Words } from './language.ts'

/** Sentences for refusals, by code; others keep the message of the API. `unreachable` is a lost connection. */
export const failureWords: Words<Readonly<Record<string, string>>> = {
  en: {
    unreachable:
      'The service cannot be reached. Check your connection, then try again. Nothing that you typed is lost.',
    session_required: 'Your session has ended. Sign in again in another tab, then try again here. Nothing is lost.',
    wrong_origin: 'This form was sent by another page. Reload the page, then try again.',
    insufficient_scope: 'Your token may not do this.',
    not_found: 'This clip does not exist, or no longer.',
    gone: 'This clip was deleted.',
    rate_limited: 'Too many requests. Wait a moment, then try again.',
    unavailable: 'The service is not available at the moment. Try again soon.',
    internal: 'The service could not do this. Try again.',
  },
  de: {
    unreachable:
      'Der Dienst ist nicht erreichbar. Prüfen Sie Ihre Verbindung und versuchen Sie es dann noch einmal. Was Sie eingegeben haben, bleibt erhalten.',
    session_required:
      'Ihre Sitzung ist beendet. Melden Sie sich in einem anderen Tab neu an und versuchen Sie es dann hier noch einmal. Es geht nichts verloren.',
    wrong_origin: 'Dieses Formular kam von einer anderen Seite. Laden Sie die Seite neu und versuchen Sie es dann.',
    insufficient_scope: 'Ihr Token darf das nicht.',
    not_found: 'Diesen Clip gibt es nicht, oder nicht mehr.',
    gone: 'Dieser Clip wurde gelöscht.',
    rate_limited: 'Zu viele Anfragen. Warten Sie einen Moment und versuchen Sie es dann noch einmal.',
    unavailable: 'Der Dienst ist im Moment nicht verfügbar. Versuchen Sie es bald noch einmal.',
    internal: 'Der Dienst konnte das nicht ausführen. Versuchen Sie es noch einmal.',
  },
}
