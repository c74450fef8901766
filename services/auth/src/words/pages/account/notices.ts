import { inEachLanguage } from '../../language.ts'

export const noticeWords = inEachLanguage({
  en: {
    language: 'Language',
    hint: 'For these pages and for mails to you.',
    browser: 'As your browser says',
    heading: 'Notices',
    sent: 'A mail to {email} reports each of these events:',
    fixed: 'These mails protect your account, so they cannot be turned off.',
    none: 'No notices about your account are sent.',
  },
  de: {
    language: 'Sprache',
    hint: 'Für diese Seiten und für Mails an dich.',
    browser: 'Wie dein Browser angibt',
    heading: 'Benachrichtigungen',
    sent: 'Eine Mail an {email} berichtet von jedem dieser Ereignisse:',
    fixed: 'Diese Mails schützen dein Konto, deshalb lassen sie sich nicht abschalten.',
    none: 'Über dein Konto werden keine Benachrichtigungen verschickt.',
  },
})
