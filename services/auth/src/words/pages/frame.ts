import { inEachLanguage } from '../language.ts'

/** Sentences around every page. */
export const frameWords = inEachLanguage({
  en: {
    help: 'Help',
    failed: 'That did not work',
    again: 'Start again',
    expired:
      'This page was open for too long, or cookies are blocked. Please try again, and allow cookies for this site.',
    changed: 'You have signed in or out since this page was opened, or it was open for too long. Please try again.',
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
    changed:
      'Seit diese Seite geöffnet wurde, hast du dich an- oder abgemeldet, oder sie war zu lange offen. Bitte versuche es noch einmal.',
    reference: 'Kennung: {id}',
    leaving: 'Einen Moment',
    sentOn: 'Es geht weiter zu {name}. Falls nichts passiert:',
    goOn: 'Weiter zu {name}',
  },
})
