// Refusals of the API in the reader's language, by `error_code`. A code that is not here shows the API's own text, such
// as that of an operator's hook.
import type { ErrorCode } from '../../errors.ts'
import { fill, inEachLanguage, type Language } from '../language.ts'

const ENGLISH = {
  captcha_failed: 'The check that you are a person has failed. Please try again.',
  current_password_invalid: 'The current password is wrong.',
  current_password_required: 'Please enter your current password.',
  email_address_not_authorized: 'No mail is sent to this address.',
  email_conflict_identity_not_deletable: 'The address of this account belongs to another one, so it stays.',
  email_exists: 'This email address cannot be used.',
  email_not_confirmed: 'Please confirm your email address first. The link is in the mail that we sent you.',
  email_provider_disabled: 'Signing in by email is disabled.',
  identity_already_exists: 'This account at the provider is linked already.',
  insufficient_aal: 'Please confirm with your second factor first.',
  invalid_credentials: 'The address or the password is wrong.',
  mfa_challenge_expired: 'This took too long. Please request a new code.',
  mfa_factor_name_conflict: 'You have a second factor of this name. Please choose another name.',
  mfa_recovery_codes_locked: 'Too many wrong codes. Please try again later.',
  mfa_verification_failed: 'This code is wrong. Please check it and try again.',
  mfa_verification_rejected: 'You have been signed out, because a code was refused. Please sign in again.',
  otp_expired: 'This code is wrong or has expired.',
  over_capacity: 'Many people are signing in right now. Please try again in a moment.',
  over_email_send_rate_limit: 'A mail was requested only a moment ago, so no new one was sent.',
  over_request_rate_limit: 'Too many attempts. Please try again later.',
  over_sms_send_rate_limit: 'A text message was requested only a moment ago, so no new one was sent.',
  phone_exists: 'This phone number cannot be used.',
  phone_not_confirmed: 'Please confirm your phone number first.',
  phone_provider_disabled: 'Signing in by phone is disabled.',
  provider_disabled: 'This way to sign in is disabled.',
  provider_email_needs_verification:
    'Please confirm your email address first. The link is in the mail that we sent you.',
  provider_unavailable: 'This provider cannot be reached. Please try again in a moment.',
  reauthentication_needed: 'Please confirm with the code that we sent you.',
  reauthentication_not_valid: 'This code is wrong or has expired.',
  request_entity_too_large: 'This is too long. Please shorten it.',
  request_timeout: 'This took too long. Please try again.',
  same_password: 'Please choose a password that differs from the old one.',
  service_unavailable: 'This is not available right now. Please try again in a moment.',
  session_expired: 'Your session has ended. Please sign in again.',
  session_not_found: 'Your session has ended. Please sign in again.',
  signup_disabled: 'New accounts are by invitation only.',
  single_identity_not_deletable: 'This is the last way to sign in, so it stays.',
  too_many_enrolled_mfa_factors: 'You have as many second factors as possible. Remove one first.',
  too_many_passkeys: 'You have as many passkeys as possible. Remove one first.',
  unexpected_failure: 'Something went wrong on our side. Please try again.',
  user_banned: 'This account is blocked.',
  validation_failed: 'Please check what you have entered.',
  weak_password: 'This password is too easy to guess. Please choose a longer one.',
  webauthn_challenge_expired: 'This took too long. Please try again.',
  webauthn_challenge_not_found: 'This took too long. Please try again.',
  webauthn_credential_exists: 'This passkey is added already.',
  webauthn_verification_failed: 'The passkey could not be verified. Please try again.',
} satisfies Partial<Record<ErrorCode, string>>

const SENTENCES = inEachLanguage<Record<keyof typeof ENGLISH, string>>({
  en: ENGLISH,
  de: {
    captcha_failed: 'Die Prüfung, ob du ein Mensch bist, ist fehlgeschlagen. Bitte versuche es noch einmal.',
    current_password_invalid: 'Das bisherige Passwort ist falsch.',
    current_password_required: 'Bitte gib dein bisheriges Passwort ein.',
    email_address_not_authorized: 'An diese Adresse wird keine Mail gesendet.',
    email_conflict_identity_not_deletable: 'Die Adresse dieses Kontos gehört einem anderen. Deshalb bleibt es.',
    email_exists: 'Diese E-Mail-Adresse kann nicht verwendet werden.',
    email_not_confirmed:
      'Bitte bestätige zuerst deine E-Mail-Adresse. Der Link steht in der Mail, die du bekommen hast.',
    email_provider_disabled: 'Die Anmeldung mit E-Mail-Adresse ist ausgeschaltet.',
    identity_already_exists: 'Dieses Konto beim Anbieter ist schon verknüpft.',
    insufficient_aal: 'Bitte bestätige zuerst mit deinem zweiten Faktor.',
    invalid_credentials: 'Die Adresse oder das Passwort ist falsch.',
    mfa_challenge_expired: 'Das hat zu lange gedauert. Bitte fordere einen neuen Code an.',
    mfa_factor_name_conflict: 'Du hast schon einen zweiten Faktor mit diesem Namen. Bitte wähle einen anderen.',
    mfa_recovery_codes_locked: 'Zu viele falsche Codes. Bitte versuche es später noch einmal.',
    mfa_verification_failed: 'Dieser Code ist falsch. Bitte prüfe ihn und versuche es noch einmal.',
    mfa_verification_rejected: 'Du wurdest abgemeldet, weil ein Code abgelehnt wurde. Bitte melde dich neu an.',
    otp_expired: 'Dieser Code ist falsch oder abgelaufen.',
    over_capacity: 'Gerade melden sich viele an. Bitte versuche es gleich noch einmal.',
    over_email_send_rate_limit: 'Eine Mail wurde gerade erst angefordert, deshalb wurde keine neue gesendet.',
    over_request_rate_limit: 'Zu viele Versuche. Bitte versuche es später noch einmal.',
    over_sms_send_rate_limit: 'Eine SMS wurde gerade erst angefordert, deshalb wurde keine neue gesendet.',
    phone_exists: 'Diese Telefonnummer kann nicht verwendet werden.',
    phone_not_confirmed: 'Bitte bestätige zuerst deine Telefonnummer.',
    phone_provider_disabled: 'Die Anmeldung mit Telefonnummer ist ausgeschaltet.',
    provider_disabled: 'Diese Art der Anmeldung ist ausgeschaltet.',
    provider_email_needs_verification:
      'Bitte bestätige zuerst deine E-Mail-Adresse. Der Link steht in der Mail, die du bekommen hast.',
    provider_unavailable: 'Dieser Anbieter ist nicht erreichbar. Bitte versuche es gleich noch einmal.',
    reauthentication_needed: 'Bitte bestätige mit dem Code, den du bekommen hast.',
    reauthentication_not_valid: 'Dieser Code ist falsch oder abgelaufen.',
    request_entity_too_large: 'Das ist zu lang. Bitte kürze es.',
    request_timeout: 'Das hat zu lange gedauert. Bitte versuche es noch einmal.',
    same_password: 'Bitte wähle ein anderes Passwort als das bisherige.',
    service_unavailable: 'Das geht gerade nicht. Bitte versuche es gleich noch einmal.',
    session_expired: 'Deine Sitzung ist beendet. Bitte melde dich neu an.',
    session_not_found: 'Deine Sitzung ist beendet. Bitte melde dich neu an.',
    signup_disabled: 'Neue Konten gibt es nur auf Einladung.',
    single_identity_not_deletable: 'Das ist die letzte Art, dich anzumelden. Deshalb bleibt sie.',
    too_many_enrolled_mfa_factors: 'Mehr zweite Faktoren sind nicht möglich. Entferne zuerst einen.',
    too_many_passkeys: 'Mehr Passkeys sind nicht möglich. Entferne zuerst einen.',
    unexpected_failure: 'Bei uns ist etwas schiefgegangen. Bitte versuche es noch einmal.',
    user_banned: 'Dieses Konto ist gesperrt.',
    validation_failed: 'Bitte prüfe deine Angaben.',
    weak_password: 'Dieses Passwort ist zu leicht zu erraten. Bitte wähle ein längeres.',
    webauthn_challenge_expired: 'Das hat zu lange gedauert. Bitte versuche es noch einmal.',
    webauthn_challenge_not_found: 'Das hat zu lange gedauert. Bitte versuche es noch einmal.',
    webauthn_credential_exists: 'Dieser Passkey ist schon hinzugefügt.',
    webauthn_verification_failed: 'Der Passkey konnte nicht geprüft werden. Bitte versuche es noch einmal.',
  },
})

const WAIT = inEachLanguage({
  en: { later: 'You can try again in {seconds} seconds.', minutes: 'You can try again in {minutes} minutes.' },
  de: {
    later: 'In {seconds} Sekunden geht es wieder.',
    minutes: 'In {minutes} Minuten geht es wieder.',
  },
})

/** A refusal of the API. */
export interface Refusal {
  code: string
  message: string
  retryAfterSeconds?: number | undefined
}

/** Returns the sentence that explains a refusal, and when the next attempt is possible. */
export function explain(language: Language, { code, message, retryAfterSeconds }: Refusal): string {
  const sentences: Partial<Record<string, string>> = SENTENCES[language]
  const sentence = (Object.hasOwn(sentences, code) && sentences[code]) || message
  if (retryAfterSeconds === undefined) return sentence
  const { later, minutes } = WAIT[language]
  const wait =
    retryAfterSeconds <= 120
      ? fill(later, { seconds: retryAfterSeconds })
      : fill(minutes, { minutes: Math.ceil(retryAfterSeconds / 60) })
  return `${sentence} ${wait}`
}
