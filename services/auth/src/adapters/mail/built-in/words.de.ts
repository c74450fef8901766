import type { Words } from './mail-words.ts'

const code = 'Oder gib diesen Code ein'
const site = '{{ .SiteURL }}'
const notYou = `Wenn du das nicht warst, setze dein Passwort auf ${site} sofort zurück: Jemand anderes benutzt vielleicht dein Konto.`

const close = 'Wenn du das nicht wolltest, schließe diese Seite.'

const factor =
  '{{ if eq .FactorType "totp" }}eine Authenticator-App{{ else if eq .FactorType "phone" }}eine Telefonnummer{{ else if eq .FactorType "webauthn" }}einen Sicherheitsschlüssel{{ else }}{{ .FactorType }}{{ end }}'

const provider =
  '{{ if eq .Provider "phone" }}einer Telefonnummer{{ else if eq .Provider "email" }}einer E-Mail-Adresse{{ else }}{{ .Provider }}{{ end }}'

export const GERMAN: Words = {
  pages: {
    signup: {
      heading: 'E-Mail-Adresse bestätigen',
      text: `Bestätige diese Adresse, um dein Konto auf {site} fertig anzulegen. ${close}`,
      button: 'E-Mail-Adresse bestätigen',
    },
    invite: {
      heading: 'Du bist eingeladen',
      text: `Nimm die Einladung an, ein Konto auf {site} anzulegen. ${close}`,
      button: 'Einladung annehmen',
    },
    recovery: {
      heading: 'Setze dein Passwort zurück',
      text: `Weiter zu {site}, um ein neues Passwort zu wählen. ${close}`,
      button: 'Weiter',
    },
    magiclink: {
      heading: 'Anmelden',
      text: `Melde dich in diesem Browser auf {site} an. ${close}`,
      button: 'Anmelden',
    },
    email_change: {
      heading: 'Neue E-Mail-Adresse bestätigen',
      text: `Bestätige, dass ein Konto auf {site} seine E-Mail-Adresse so ändern darf, wie es in der Mail steht. ${close}`,
      button: 'Änderung bestätigen',
    },
    email: { heading: 'Fast geschafft', text: `Weiter zu {site}. ${close}`, button: 'Weiter' },
  },
  linking: {
    heading: 'Konto verknüpfen?',
    text: `Das Konto, mit dem du dich gleich bei {provider} anmeldest, wird ein Zugang zu {account} auf {site}. Mach nur weiter, wenn das dein eigenes Konto ist und du das dort gerade wolltest. Sonst schließe diese Seite: Deine Anmeldung würde zum Konto von jemand anderem gehören.`,
    account: 'dem Konto {address}',
    guest: 'einem Gastkonto ohne Adresse',
    button: 'Mein Konto verknüpfen',
  },
  providerTested: {
    heading: 'Der Test ist beendet',
    text: 'Das Ergebnis steht dort, wo der Test gestartet wurde. Es wurde kein Konto angelegt und keine Sitzung begonnen. Du kannst diese Seite schließen.',
  },
  linkHint: 'Falls die Schaltfläche nicht funktioniert, öffne diese Adresse:',
  mails: {
    invite: {
      subject: 'Du bist eingeladen',
      heading: 'Du bist eingeladen',
      text: `Jemand hat dich eingeladen, ein Konto auf ${site} anzulegen.`,
      button: 'Einladung annehmen',
      code,
      footer: 'Wenn du diese Einladung nicht erwartet hast, kannst du diese Mail ignorieren.',
    },
    confirmation: {
      subject: 'Bestätige deine E-Mail-Adresse',
      heading: 'E-Mail-Adresse bestätigen',
      text: `Willkommen! Bestätige {{ .Email }}, um dein Konto auf ${site} fertig anzulegen.{{ if .Provider }} Eine Anmeldung mit {{ .Provider }} hat diese Adresse angegeben, die {{ .Provider }} nicht geprüft hat. Bestätige nicht, wenn du das nicht warst: Im Browser dieser Anmeldung geöffnet, lässt der Link das Konto bei {{ .Provider }} zu.{{ end }}{{ if eq .Password "chosen" }} Das Konto wurde mit einem Passwort angelegt. Bestätige nicht, wenn du es nicht gewählt hast: Wer es gewählt hat, könnte sich damit anmelden.{{ else if eq .Password "dropped" }} Für diese Adresse wurde mehr als ein Passwort angegeben, deshalb gilt keines: Wähle nach dem Bestätigen eins.{{ end }}`,
      button: 'E-Mail-Adresse bestätigen',
      code,
      footer: 'Wenn du kein Konto angelegt hast, kannst du diese Mail ignorieren.',
    },
    recovery: {
      subject: 'Setze dein Passwort zurück',
      heading: 'Setze dein Passwort zurück',
      text: `Jemand, hoffentlich du, möchte das Passwort von {{ .Email }} auf ${site} zurücksetzen.`,
      button: 'Passwort zurücksetzen',
      code,
      footer: 'Wenn du das nicht warst, kannst du diese Mail ignorieren: Dein Passwort bleibt, wie es ist.',
    },
    magic_link: {
      subject: 'Dein Anmeldelink',
      heading: 'Anmelden',
      text: `Mit dieser Schaltfläche meldest du dich auf ${site} als {{ .Email }} an. Sie funktioniert einmal.`,
      button: 'Anmelden',
      code,
      footer: 'Wenn du dich nicht anmelden wolltest, kannst du diese Mail ignorieren. Gib Link und Code nicht weiter.',
    },
    email_change: {
      subject: 'Bestätige deine neue E-Mail-Adresse',
      heading: 'Neue E-Mail-Adresse bestätigen',
      text: `{{ if eq .Email .NewEmail }}{{ .NewEmail }} soll die Adresse deines Kontos auf ${site} werden.{{ else }}Die Adresse deines Kontos auf ${site} soll von {{ .Email }} auf {{ .NewEmail }} geändert werden.{{ end }} Bestätige nur, wenn du das selbst wolltest: Wer in diesem Konto angemeldet ist, bleibt angemeldet und behält dessen Passkeys, und mit {{ .NewEmail }} kann man sich dann anmelden und das Passwort zurücksetzen.`,
      button: 'Änderung bestätigen',
      code,
      footer:
        '{{ if eq .Email .NewEmail }}Wenn du das nicht wolltest, ignoriere diese Mail.{{ else }}Wenn du diese Änderung nicht wolltest, ignoriere diese Mail und ändere dein Passwort.{{ end }}',
    },
    reauthentication: {
      subject: '{{ .Token }} ist dein Bestätigungscode',
      heading: 'Dein Bestätigungscode',
      text: `Gib diesen Code auf ${site} ein, um zu bestätigen, dass du es bist.`,
      code: 'Dein Code',
      footer:
        'Wenn du keinen Code angefordert hast, ist vielleicht jemand anderes in deinem Konto angemeldet: Ändere dein Passwort.',
    },
    account_exists: {
      subject: 'Du hast schon ein Konto',
      heading: 'Du hast schon ein Konto',
      text: `Jemand wollte sich auf ${site} mit {{ .Email }} registrieren, aber du hast dort schon ein Konto. Melde dich auf ${site} an. Falls du dein Passwort vergessen hast, setze dort ein neues.`,
      footer: 'Wenn du das nicht warst, kannst du diese Mail ignorieren: Dein Konto ist, wie es war.',
    },
    password_changed_notification: {
      subject: 'Dein Passwort wurde geändert',
      heading: 'Dein Passwort wurde geändert',
      text: `Das Passwort deines Kontos {{ .Email }} auf ${site} wurde soeben geändert.`,
      footer: notYou,
    },
    email_changed_notification: {
      subject: 'Deine E-Mail-Adresse wurde geändert',
      heading: 'Deine E-Mail-Adresse wurde geändert',
      text: `Die E-Mail-Adresse deines Kontos auf ${site} wurde soeben von {{ .OldEmail }} auf {{ .Email }} geändert. Mails zu diesem Konto gehen ab jetzt an die neue Adresse.`,
      footer: `Wenn du das nicht warst, benutzt vielleicht jemand anderes dein Konto: Wende dich sofort an die Betreiber von ${site}.`,
    },
    phone_changed_notification: {
      subject: 'Deine Telefonnummer wurde geändert',
      heading: 'Deine Telefonnummer wurde geändert',
      text: `Die Telefonnummer deines Kontos {{ .Email }} auf ${site} wurde soeben von +{{ .OldPhone }} auf +{{ .Phone }} geändert.`,
      footer: notYou,
    },
    identity_linked_notification: {
      subject: 'Dein Konto hat eine neue Anmeldemöglichkeit',
      heading: 'Eine neue Anmeldemöglichkeit',
      text: `Zu deinem Konto {{ .Email }} auf ${site} wurde soeben die Anmeldung mit ${provider} hinzugefügt.`,
      footer: `Wenn du das nicht warst, melde dich auf ${site} an, entferne sie und ändere dein Passwort.`,
    },
    identity_unlinked_notification: {
      subject: 'Eine Anmeldemöglichkeit deines Kontos wurde entfernt',
      heading: 'Eine Anmeldemöglichkeit wurde entfernt',
      text: `Von deinem Konto {{ .Email }} auf ${site} wurde soeben die Anmeldung mit ${provider} entfernt.`,
      footer: notYou,
    },
    mfa_factor_enrolled_notification: {
      subject: 'Dein Konto hat eine neue Bestätigungsmethode',
      heading: 'Eine neue Bestätigungsmethode',
      text: `Ab jetzt lassen sich Anmeldungen bei deinem Konto {{ .Email }} auf ${site} durch ${factor} bestätigen.`,
      footer: `Wenn du das nicht warst, melde dich auf ${site} an, entferne sie und ändere dein Passwort.`,
    },
    mfa_factor_unenrolled_notification: {
      subject: 'Eine Bestätigungsmethode deines Kontos wurde entfernt',
      heading: 'Eine Bestätigungsmethode wurde entfernt',
      text: `Dein Konto {{ .Email }} auf ${site} bestätigt Anmeldungen nicht mehr durch ${factor}.`,
      footer: notYou,
    },
    mfa_trusted_device_added_notification: {
      subject: 'Ein Gerät darf sich jetzt einfacher bei deinem Konto anmelden',
      heading: 'Ein neues vertrautes Gerät',
      text: `Ein Gerät{{ if .Device }} namens {{ .Device }}{{ end }} gilt ab jetzt als vertraut: Bei Anmeldungen bei deinem Konto {{ .Email }} auf ${site} wird dort keine Bestätigungsmethode mehr abgefragt.`,
      footer: `Wenn du das nicht warst, melde dich auf ${site} an, entferne das Gerät und ändere dein Passwort.`,
    },
    mfa_recovery_code_used_notification: {
      subject: 'Ein Wiederherstellungscode deines Kontos wurde benutzt',
      heading: 'Ein Wiederherstellungscode wurde benutzt',
      text: `Jemand, hoffentlich du, hat soeben eine Anmeldung bei deinem Konto {{ .Email }} auf ${site} mit einem Wiederherstellungscode bestätigt. Übrige Codes: {{ .Remaining }}.`,
      footer: notYou,
    },
    passkey_added_notification: {
      subject: 'Dein Konto hat einen neuen Passkey',
      heading: 'Ein neuer Passkey',
      text: `Ab jetzt meldet der Passkey „{{ .Passkey }}“ bei deinem Konto {{ .Email }} auf ${site} an.`,
      footer: `Wenn du das nicht warst, melde dich auf ${site} an, entferne ihn und ändere dein Passwort.`,
    },
    passkey_removed_notification: {
      subject: 'Ein Passkey deines Kontos wurde entfernt',
      heading: 'Ein Passkey wurde entfernt',
      text: `Der Passkey „{{ .Passkey }}“ meldet nicht mehr bei deinem Konto {{ .Email }} auf ${site} an.`,
      footer: notYou,
    },
    passkey_copied_notification: {
      subject: 'Ein Passkey deines Kontos wurde vielleicht kopiert',
      heading: 'Ein Passkey wurde vielleicht kopiert',
      text: `Eine Anmeldung bei deinem Konto {{ .Email }} auf ${site} wurde abgelehnt: Der Passkey „{{ .Passkey }}“ zählt, wie oft er benutzt wird, und der Zähler war ein alter. Entferne diesen Passkey und füge einen neuen hinzu.`,
      footer: notYou,
    },
    account_deleted_notification: {
      subject: 'Dein Konto wurde gelöscht',
      heading: 'Dein Konto wurde gelöscht',
      text: `Dein Konto {{ .Email }} auf ${site} wurde soeben auf deinen Wunsch gelöscht, mit allem, was darin gespeichert war. Es lässt sich nicht wiederherstellen.`,
      footer: `Wenn du das nicht warst, hat jemand anderes dein Konto benutzt: Wende dich sofort an die Betreiber von ${site}.`,
    },
  },
}
