import { inEachLanguage } from '../../language.ts'

export const addressWords = inEachLanguage({
  en: {
    newEmail: 'New email address',
    newPhone: 'New phone number',
    change: 'Change',
    removeEmail: 'Remove this email address',
    removePhone: 'Remove this phone number',
    sent: 'A code is on its way. The change takes effect once it is confirmed.',
    code: 'Code that we sent to {to}',
    confirm: 'Confirm',
    agreed: 'Thank you. Now enter the code that went to the other address.',
    confirmed: 'The address is confirmed.',
  },
  de: {
    newEmail: 'Neue E-Mail-Adresse',
    newPhone: 'Neue Telefonnummer',
    change: 'Ändern',
    removeEmail: 'Diese E-Mail-Adresse entfernen',
    removePhone: 'Diese Telefonnummer entfernen',
    sent: 'Ein Code ist unterwegs. Die Änderung gilt, sobald er bestätigt ist.',
    code: 'Code, den wir an {to} gesendet haben',
    confirm: 'Bestätigen',
    agreed: 'Danke. Gib jetzt noch den Code ein, der an die andere Adresse ging.',
    confirmed: 'Die Adresse ist bestätigt.',
  },
})
