import type { Words } from './language.ts'

interface AlbumWords {
  empty: string
  missing: string
  home: string
  more: string
  first: string
  feed: string
  previous: string
  next: string
  report: string
  notSafe: string
  marked: string
  show: string
  hide: string
}

export const albumWords: Words<AlbumWords> = {
  en: {
    empty: 'There are no clips in this album.',
    missing: 'There is no such album.',
    home: 'To the start page',
    more: 'More clips',
    first: 'To the first clips',
    feed: 'New clips of this album',
    previous: 'Previous clip',
    next: 'Next clip',
    report: 'Report',
    notSafe: 'Not safe for work',
    marked: 'This clip was marked as sensitive.',
    show: 'Show it',
    hide: 'Hide',
  },
  de: {
    empty: 'In diesem Album sind keine Clips.',
    missing: 'Dieses Album gibt es nicht.',
    home: 'Zur Startseite',
    more: 'Weitere Clips',
    first: 'Zu den ersten Clips',
    feed: 'Neue Clips dieses Albums',
    previous: 'Voriger Clip',
    next: 'Nächster Clip',
    report: 'Melden',
    notSafe: 'Heikel',
    marked: 'Dieser Clip ist als heikel markiert.',
    show: 'Anzeigen',
    hide: 'Ausblenden',
  },
}
