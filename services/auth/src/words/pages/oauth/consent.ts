import { inEachLanguage } from '../../language.ts'

/** Sentences of the page on which a user agrees to the request of an application. */
export const consentWords = inEachLanguage({
  en: {
    title: 'Allow access?',
    asks: '{client} asks for access to your account {name}. It may:',
    asksGuest: '{client} asks for access to your guest account. It may:',
    resources: 'It may do so at: {resources}',
    nothing: 'Sign you in, and nothing else',
    leads: 'After your answer you go to {host}.',
    allow: 'Allow',
    deny: 'Deny',
    another: 'Use another account',
    gone: 'This request has expired or is answered already. Please start again in the application.',
    setUp: 'This application demands a second factor.',
    proof: 'This application wants you to sign in again.',
  },
  de: {
    title: 'Zugriff erlauben?',
    asks: '{client} bittet um Zugriff auf dein Konto {name}. Damit darf die Anwendung:',
    asksGuest: '{client} bittet um Zugriff auf dein Gastkonto. Damit darf die Anwendung:',
    resources: 'Das gilt bei: {resources}',
    nothing: 'Dich anmelden, sonst nichts',
    leads: 'Nach deiner Antwort geht es weiter zu {host}.',
    allow: 'Erlauben',
    deny: 'Ablehnen',
    another: 'Ein anderes Konto verwenden',
    gone: 'Diese Anfrage ist abgelaufen oder schon beantwortet. Bitte beginne in der Anwendung noch einmal.',
    setUp: 'Diese Anwendung verlangt einen zweiten Faktor.',
    proof: 'Diese Anwendung möchte, dass du dich noch einmal anmeldest.',
  },
})
