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
    hidden: 'The operator of this service has hidden this clip.',
    clip_changed: 'This clip was changed elsewhere meanwhile. Reload the page, then try again.',
    album_changed: 'This album was changed elsewhere meanwhile. Reload the page, then try again.',
    album_full: 'An album has at most 500 clips.',
    too_many_albums: 'There are too many albums: at most 1,000 in all, and 50 that have the same clip.',
    bulk_too_large: 'At most 500 clips can be changed at once. Choose fewer.',
    archive_too_large: 'At most 100 clips and 2 GB can be downloaded at once. Choose fewer.',
    quota_exceeded: 'Your storage is full. Delete clips, then try again.',
    daily_bytes_exceeded: 'You have reached the limit of bytes for today. Try again tomorrow.',
    queue_full: 'Too many of your clips are waiting at once. Try again soon.',
    busy: 'The service is busy. Try again soon.',
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
    hidden: 'Der Betreiber dieses Dienstes hat diesen Clip ausgeblendet.',
    clip_changed:
      'Dieser Clip wurde inzwischen anderswo geändert. Laden Sie die Seite neu und versuchen Sie es noch einmal.',
    album_changed:
      'Dieses Album wurde inzwischen anderswo geändert. Laden Sie die Seite neu und versuchen Sie es noch einmal.',
    album_full: 'Ein Album hat höchstens 500 Clips.',
    too_many_albums: 'Das sind zu viele Alben: höchstens 1.000 insgesamt, und 50 mit demselben Clip.',
    bulk_too_large: 'Höchstens 500 Clips lassen sich auf einmal ändern. Wählen Sie weniger.',
    archive_too_large: 'Höchstens 100 Clips und 2 GB lassen sich auf einmal herunterladen. Wählen Sie weniger.',
    quota_exceeded: 'Ihr Speicher ist voll. Löschen Sie Clips und versuchen Sie es dann noch einmal.',
    daily_bytes_exceeded: 'Sie haben die Datenmenge für heute erreicht. Versuchen Sie es morgen noch einmal.',
    queue_full: 'Zu viele Ihrer Clips warten zugleich. Versuchen Sie es bald noch einmal.',
    busy: 'Der Dienst ist ausgelastet. Versuchen Sie es bald noch einmal.',
    rate_limited: 'Zu viele Anfragen. Warten Sie einen Moment und versuchen Sie es dann noch einmal.',
    unavailable: 'Der Dienst ist im Moment nicht verfügbar. Versuchen Sie es bald noch einmal.',
    internal: 'Der Dienst konnte das nicht ausführen. Versuchen Sie es noch einmal.',
  },
}
