import type { Words } from './language.ts'

interface FrameWords {
  skip: string
  menu: string
  home: string
  library: string
  albums: string
  admin: string
  signOut: string
  notFound: string
  notFoundText: string
  toLibrary: string
  problem: string
  needsScope: string
}

/** Texts of the frame of pages for visitors who are signed in. */
export const frameWords: Words<FrameWords> = {
  en: {
    skip: 'Skip to the content',
    menu: 'Pages',
    home: 'Add a clip',
    library: 'Library',
    albums: 'Albums',
    admin: 'Administration',
    signOut: 'Sign out',
    notFound: 'Not found',
    notFoundText: 'There is nothing at this address, or no longer.',
    toLibrary: 'Go to your library',
    problem: 'This did not work',
    needsScope: 'Your token lacks the scope that this page needs:',
  },
  de: {
    skip: 'Zum Inhalt springen',
    menu: 'Seiten',
    home: 'Clip hinzufügen',
    library: 'Bibliothek',
    albums: 'Alben',
    admin: 'Verwaltung',
    signOut: 'Abmelden',
    notFound: 'Nicht gefunden',
    notFoundText: 'Unter dieser Adresse gibt es nichts, oder nichts mehr.',
    toLibrary: 'Zur Bibliothek',
    problem: 'Das hat nicht geklappt',
    needsScope: 'Ihrem Token fehlt die Berechtigung, die diese Seite braucht:',
  },
}
