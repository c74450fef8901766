import { inEachLanguage } from '../language.ts'

/** Sentences around every page. */
export const frameWords = inEachLanguage({
  en: {
    help: 'Help',
    failed: 'That did not work',
    again: 'Start again',
    expired:
      'This page was open for too long, or cookies are blocked. Please try again, and allow cookies for this site.',
    reference: 'Reference: {id}',
    leaving: 'One moment',
    sentOn: 'You are being sent on to {name}. If nothing happens:',
    goOn: 'Continue to {name}',
  },
  de: {
    help: 'Hilfe',
    failed: 'Das hat nicht geklappt',
    again: 'Von vorn beginnen',
    expired:
      'Diese Seite war zu lange offen, oder Cookies sind blockiert. Bitte versuche es noch einmal und erlaube Cookies für diese Seite.',
    reference: 'Kennung: {id}',
    leaving: 'Einen Moment',
    sentOn: 'Es geht weiter zu {name}. Falls nichts passiert:',
    goOn: 'Weiter zu {name}',
  },
})
