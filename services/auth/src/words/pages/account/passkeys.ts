import { inEachLanguage } from '../../language.ts'

export const passkeyWords = inEachLanguage({
  en: {
    empty: 'You have no passkeys yet.',
    addedAt: 'Added',
    usedAt: 'Last used',
    never: 'never',
    actions: 'Actions',
    rename: 'Rename',
    newName: 'New name',
    add: 'Add a passkey',
    added: 'The passkey is added. It signs you in from now on.',
    how: 'Your device creates a passkey and unlocks it as it unlocks its screen, or with a security key.',
    make: 'Create the passkey',
    needsScript: 'Passkeys need JavaScript, which is disabled in this browser.',
    failed: 'No passkey was created. Your device may have one already, or the dialog was closed.',
  },
  de: {
    empty: 'Du hast noch keine Passkeys.',
    addedAt: 'Hinzugefügt',
    usedAt: 'Zuletzt benutzt',
    never: 'nie',
    actions: 'Aktionen',
    rename: 'Umbenennen',
    newName: 'Neuer Name',
    add: 'Passkey hinzufügen',
    added: 'Der Passkey ist hinzugefügt. Ab jetzt meldet er dich an.',
    how: 'Dein Gerät legt einen Passkey an und gibt ihn frei wie seinen Bildschirm, oder mit einem Sicherheitsschlüssel.',
    make: 'Passkey anlegen',
    needsScript: 'Passkeys brauchen JavaScript, und das ist in diesem Browser ausgeschaltet.',
    failed: 'Es wurde kein Passkey angelegt. Vielleicht hat dein Gerät schon einen, oder der Dialog wurde geschlossen.',
  },
})
