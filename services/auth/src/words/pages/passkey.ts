import { inEachLanguage } from '../language.ts'

export const passkeyWords = inEachLanguage({
  en: {
    signIn: 'Sign in with a passkey',
    failed: 'That was cancelled, or your device has no fitting passkey. You can try again.',
    offerTitle: 'Sign in without a password?',
    offer:
      'With a passkey you sign in as you unlock this device: by fingerprint, face or PIN. It cannot be guessed or phished.',
    add: 'Add a passkey',
    later: 'Not now',
  },
  de: {
    signIn: 'Mit Passkey anmelden',
    failed: 'Das wurde abgebrochen, oder dein Gerät hat keinen passenden Passkey. Du kannst es noch einmal versuchen.',
    offerTitle: 'Ohne Passwort anmelden?',
    offer:
      'Mit einem Passkey meldest du dich so an, wie du dein Gerät entsperrst: mit Fingerabdruck, Gesicht oder PIN. Er kann weder erraten noch abgefangen werden.',
    add: 'Passkey hinzufügen',
    later: 'Jetzt nicht',
  },
})
