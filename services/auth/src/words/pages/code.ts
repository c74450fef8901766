import { inEachLanguage } from '../language.ts'

export const codeWords = inEachLanguage({
  en: {
    title: 'Enter the code',
    mailed:
      'If there is an account for {address}, a mail with a code is on its way. Its link works in this browser too.',
    registered: 'A mail is on its way to {address}. Enter its code, or open its link.',
    texted: 'If there is an account for {address}, a text message with a code is on its way.',
    linkTitle: 'Look into your mailbox',
    linked: 'If there is an account for {address}, a mail with a link is on its way. Open it in this browser.',
    code: 'Code',
    verify: 'Continue',
    again: 'Send a new code',
    sentAgain: 'A new code is on its way.',
    another: 'Use another address',
    otherBrowser:
      'This link works only in the browser in which you asked for it. Go back there and enter the code of the mail, or sign in here anew.',
  },
  de: {
    title: 'Code eingeben',
    mailed:
      'Wenn es für {address} ein Konto gibt, ist eine Mail mit einem Code unterwegs. Auch ihr Link funktioniert in diesem Browser.',
    registered: 'Eine Mail an {address} ist unterwegs. Gib ihren Code ein, oder öffne ihren Link.',
    texted: 'Wenn es für {address} ein Konto gibt, ist eine SMS mit einem Code unterwegs.',
    linkTitle: 'Sieh in dein Postfach',
    linked:
      'Wenn es für {address} ein Konto gibt, ist eine Mail mit einem Link unterwegs. Öffne ihn in diesem Browser.',
    code: 'Code',
    verify: 'Weiter',
    again: 'Neuen Code senden',
    sentAgain: 'Ein neuer Code ist unterwegs.',
    another: 'Andere Adresse verwenden',
    otherBrowser:
      'Dieser Link funktioniert nur in dem Browser, in dem du ihn angefordert hast. Gib dort den Code aus der Mail ein, oder melde dich hier neu an.',
  },
})
