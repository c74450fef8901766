import { inEachLanguage } from '../../language.ts'

/** Sentences of the export, the deletion and the proof before them. */
export const leaveWords = inEachLanguage({
  en: {
    exportText: 'You get a file (JSON) with all that is stored about you here, without passwords and other secrets.',
    download: 'Download',
    deletionText: 'Your account and all that is stored in it are deleted at once. Nothing can restore them.',
    sure: 'I want to delete my account for good.',
    notSure: 'Please confirm that you want to delete your account.',
    delete: 'Delete my account',
    confirm: 'Confirm that it is you',
    confirmText: 'You signed in a while ago. Please confirm that it is you; then you can go on.',
    otherWay: 'Sign in again in another way',
  },
  de: {
    exportText:
      'Du bekommst eine Datei (JSON) mit allem, was hier über dich gespeichert ist, ohne Passwörter und andere Geheimnisse.',
    download: 'Herunterladen',
    deletionText:
      'Dein Konto und alles, was darin gespeichert ist, wird sofort gelöscht. Nichts davon lässt sich wiederherstellen.',
    sure: 'Ich möchte mein Konto endgültig löschen.',
    notSure: 'Bitte bestätige, dass du dein Konto löschen möchtest.',
    delete: 'Mein Konto löschen',
    confirm: 'Bestätige, dass du es bist',
    confirmText: 'Du hast dich vor einiger Zeit angemeldet. Bitte bestätige, dass du es bist; dann geht es weiter.',
    otherWay: 'Auf andere Art neu anmelden',
  },
})
