import type { Words } from './language.ts'

const en = {
  title: 'Albums',
  // List.
  create: 'New album',
  clips: 'Clips',
  noneYet: 'No albums yet. An album shows the clips that you choose at one address, in your order.',
  next: 'Next page',
  toBeginning: 'Back to the beginning',
  noWrite: 'Your token may not make or change albums: it lacks the scope write.',
  // One album.
  name: 'Title',
  description: 'Description',
  visibility: 'Visibility',
  details: 'Details',
  make: 'Make the album',
  save: 'Save',
  open: 'Open its page',
  copies: 'Copy',
  page: 'Page',
  feed: 'Feed',
  privateHint: 'This album is private: visitors see it by the links that you make below.',
  empty: 'There are no clips in this album.',
  addHint: 'Choose clips in the library, then use "Album" there.',
  toLibrary: 'Go to your library',
  order: 'Changing the order and taking clips out need JavaScript, or the API.',
  first: 'First',
  up: 'Up',
  down: 'Down',
  out: 'Take out',
  changed: 'This album was changed elsewhere. Your text is below; save it again to keep it. Stored now:',
  none: 'none',
  // Deletion.
  delete: 'Delete this album',
  deleteTitle: 'Delete this album?',
  deleteText: 'Its page, player, feed and links stop working, for good. Its clips stay in your library.',
  deleteForGood: 'Delete the album',
  back: 'Back to the album',
}

type OwnAlbumWords = typeof en

/** Texts of the pages of albums for their owner. */
export const ownAlbumWords: Words<OwnAlbumWords> = {
  en,
  de: {
    title: 'Alben',
    create: 'Neues Album',
    clips: 'Clips',
    noneYet: 'Noch keine Alben. Ein Album zeigt ausgewählte Clips unter einer Adresse, in Ihrer Reihenfolge.',
    next: 'Nächste Seite',
    toBeginning: 'Zurück zum Anfang',
    noWrite: 'Ihr Token darf keine Alben erstellen oder ändern: Ihm fehlt die Berechtigung write.',
    name: 'Titel',
    description: 'Beschreibung',
    visibility: 'Sichtbarkeit',
    details: 'Angaben',
    make: 'Album erstellen',
    save: 'Speichern',
    open: 'Seite öffnen',
    copies: 'Kopieren',
    page: 'Seite',
    feed: 'Feed',
    privateHint: 'Dieses Album ist privat: Besucher sehen es mit den Links, die Sie unten erstellen.',
    empty: 'In diesem Album sind keine Clips.',
    addHint: 'Wählen Sie Clips in der Bibliothek aus, und dort dann "Album".',
    toLibrary: 'Zur Bibliothek',
    order: 'Die Reihenfolge zu ändern und Clips zu entfernen braucht JavaScript, oder die API.',
    first: 'Zuerst',
    up: 'Hoch',
    down: 'Runter',
    out: 'Entfernen',
    changed:
      'Dieses Album wurde anderswo geändert. Ihr Text steht unten; speichern Sie ihn erneut, um ihn zu behalten. Gespeichert ist jetzt:',
    none: 'keine',
    delete: 'Dieses Album löschen',
    deleteTitle: 'Dieses Album löschen?',
    deleteText:
      'Seine Seite, sein Player, sein Feed und seine Links funktionieren dann nicht mehr, für immer. Die Clips bleiben in Ihrer Bibliothek.',
    deleteForGood: 'Album löschen',
    back: 'Zurück zum Album',
  },
}

/** Texts that the scripts of an album show, beside those of a clip; `{name}` stands for a value. */
export const ownAlbumScriptWords: Words<Readonly<Record<string, string>>> = {
  en: {
    moved: 'Clip {place} of {count}',
    takenOut: 'Taken out. The clip stays in your library.',
    changedTo: 'Changed elsewhere to "{value}". Save again to keep your text.',
    noLinks: 'Links that you make here are shown until you leave the page.',
    endText: 'Every link that you made of this album stops working at once.',
    notFound: 'This album does not exist, or no longer, or the clip has left it.',
  },
  de: {
    moved: 'Clip {place} von {count}',
    takenOut: 'Entfernt. Der Clip bleibt in Ihrer Bibliothek.',
    changedTo: 'Anderswo geändert zu "{value}". Speichern Sie erneut, um Ihren Text zu behalten.',
    noLinks: 'Links, die Sie hier erstellen, stehen hier, bis Sie die Seite verlassen.',
    endText: 'Jeder Link, den Sie zu diesem Album erstellt haben, funktioniert sofort nicht mehr.',
    notFound: 'Dieses Album gibt es nicht, oder nicht mehr, oder der Clip hat es verlassen.',
  },
}
