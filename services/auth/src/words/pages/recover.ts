import { inEachLanguage } from '../language.ts'

export const recoverWords = inEachLanguage({
  en: {
    title: 'Forgot your password?',
    text: 'Enter your address. You get a code with which you can choose a new password.',
    send: 'Send the code',
    back: 'Back to signing in',
    newTitle: 'Choose a new password',
    account: 'Account',
    current: 'Current password',
    password: 'New password',
    nonce: 'Code from the mail or text message',
    save: 'Save the password',
  },
  de: {
    title: 'Passwort vergessen?',
    text: 'Gib deine Adresse ein. Du bekommst einen Code, mit dem du ein neues Passwort wählen kannst.',
    send: 'Code senden',
    back: 'Zurück zur Anmeldung',
    newTitle: 'Neues Passwort wählen',
    account: 'Konto',
    current: 'Bisheriges Passwort',
    password: 'Neues Passwort',
    nonce: 'Code aus der Mail oder SMS',
    save: 'Passwort speichern',
  },
})
