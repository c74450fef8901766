import { inEachLanguage } from '../language.ts'

export const confirmWords = inEachLanguage({
  en: {
    agreed: 'Confirmed',
    otherAddress: 'Please confirm the change at your other address too: a mail with a link is there.',
  },
  de: {
    agreed: 'Bestätigt',
    otherAddress: 'Bitte bestätige die Änderung auch an deiner anderen Adresse: Dort liegt eine Mail mit einem Link.',
  },
})
