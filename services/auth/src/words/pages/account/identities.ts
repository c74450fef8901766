import { inEachLanguage } from '../../language.ts'

export const identityWords = inEachLanguage({
  en: {
    empty: 'No account at another provider is linked.',
    provider: 'Provider',
    address: 'Account there',
    lastUsed: 'Last used',
    actions: 'Actions',
    unlink: 'Unlink',
    unlinked: 'The account is unlinked.',
    link: 'Link another account',
    with: 'Link {name}',
  },
  de: {
    empty: 'Kein Konto bei einem anderen Anbieter ist verknüpft.',
    provider: 'Anbieter',
    address: 'Konto dort',
    lastUsed: 'Zuletzt benutzt',
    actions: 'Aktionen',
    unlink: 'Trennen',
    unlinked: 'Das Konto ist nicht mehr verknüpft.',
    link: 'Weiteres Konto verknüpfen',
    with: '{name} verknüpfen',
  },
})
