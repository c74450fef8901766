import { inEachLanguage } from '../../language.ts'

/** Sentences of the page that asks whether an application may sign the user out. */
export const logoutWords = inEachLanguage({
  en: {
    asks: '{client} asks to sign you out of this browser. You are signed in as {name}.',
    asksGuest: '{client} asks to sign you out of this browser. You are signed in as a guest.',
    next: 'Afterwards you are sent on to {name}.',
    somebody: 'An application',
  },
  de: {
    asks: '{client} möchte dich in diesem Browser abmelden. Du bist als {name} angemeldet.',
    asksGuest: '{client} möchte dich in diesem Browser abmelden. Du bist als Gast angemeldet.',
    next: 'Danach geht es weiter zu {name}.',
    somebody: 'Eine Anwendung',
  },
})
