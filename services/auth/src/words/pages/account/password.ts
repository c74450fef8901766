import { inEachLanguage } from '../../language.ts'

export const passwordWords = inEachLanguage({
  en: {
    hint: 'A new password signs you out everywhere else.',
    label: 'New password',
    atLeast: 'At least {count} characters',
    already: 'This is your password already.',
    changed: 'Your password is changed. You are signed out everywhere else.',
    code: 'Code from our message',
    send: 'Send me a code',
    sent: 'A code is on its way to you.',
  },
  de: {
    hint: 'Mit einem neuen Passwort wirst du überall sonst abgemeldet.',
    label: 'Neues Passwort',
    atLeast: 'Mindestens {count} Zeichen',
    already: 'Das ist schon dein Passwort.',
    changed: 'Dein Passwort ist geändert. Überall sonst bist du abgemeldet.',
    code: 'Code aus unserer Nachricht',
    send: 'Code senden',
    sent: 'Ein Code ist zu dir unterwegs.',
  },
})
