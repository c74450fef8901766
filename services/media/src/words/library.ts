import type { Words } from './language.ts'

interface LibraryWords {
  title: string
}

/** Texts of the pages of an owner: all clips, and one. */
export const libraryWords: Words<LibraryWords> = {
  en: { title: 'Library' },
  de: { title: 'Bibliothek' },
}
