// Words of the pages on which users answer applications: consent, devices, scopes.
import { inEachLanguage } from '../../language.ts'

/** Effects of the standard scopes, each after "may". */
export const scopeWords = inEachLanguage({
  en: {
    openid: 'Recognize you',
    email: 'See your email address',
    phone: 'See your phone number',
    profile: 'See your name and picture',
    offline_access: 'Keep this access while you are away',
    'account:read': 'See your whole account, with its sessions and second factors',
    'account:write': 'Change your profile',
    'users:read': 'See the accounts of all users',
    'users:write': 'Change and delete the accounts of users',
    'audit:read': 'See the audit log',
    'messages:read': 'See messages to all users',
    'messages:write': 'Send messages to users again',
  },
  de: {
    openid: 'Dich wiedererkennen',
    email: 'Deine E-Mail-Adresse sehen',
    phone: 'Deine Telefonnummer sehen',
    profile: 'Deinen Namen und dein Bild sehen',
    offline_access: 'Diesen Zugriff behalten, auch wenn du nicht da bist',
    'account:read': 'Dein ganzes Konto sehen, mit Sitzungen und zweiten Faktoren',
    'account:write': 'Dein Profil ändern',
    'users:read': 'Die Konten aller Nutzer sehen',
    'users:write': 'Konten von Nutzern ändern und löschen',
    'audit:read': 'Das Audit-Protokoll sehen',
    'messages:read': 'Nachrichten an alle Nutzer sehen',
    'messages:write': 'Nachrichten an Nutzer erneut senden',
  },
})
