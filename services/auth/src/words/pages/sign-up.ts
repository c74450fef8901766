import { inEachLanguage } from '../language.ts'

export const signUpWords = inEachLanguage({
  en: {
    title: 'Create an account',
    password: 'Password',
    passwordHint: 'At least {length} characters. A few words in a row are easy to remember and hard to guess.',
    create: 'Create account',
    haveAccount: 'I have an account',
  },
  de: {
    title: 'Konto anlegen',
    password: 'Passwort',
    passwordHint:
      'Mindestens {length} Zeichen. Einige Wörter hintereinander sind leicht zu merken und schwer zu erraten.',
    create: 'Konto anlegen',
    haveAccount: 'Ich habe schon ein Konto',
  },
})
