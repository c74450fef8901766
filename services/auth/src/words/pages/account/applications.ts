import { inEachLanguage } from '../../language.ts'

/** Sentences of the list of applications that the user agreed to. */
export const applicationWords = inEachLanguage({
  en: {
    hint: 'These applications may use your account. Removing one signs it out.',
    empty: 'You have agreed to no application.',
    application: 'Application',
    may: 'May',
    since: 'Since',
    actions: 'Actions',
  },
  de: {
    hint: 'Diese Anwendungen dürfen dein Konto verwenden. Entfernst du eine, wird sie abgemeldet.',
    empty: 'Du hast keiner Anwendung zugestimmt.',
    application: 'Anwendung',
    may: 'Darf',
    since: 'Seit',
    actions: 'Aktionen',
  },
})
