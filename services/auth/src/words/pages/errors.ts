// Refusals of the API in the reader's language, by `error_code`. A code has a sentence, that of another code (SAME), or
// shows the API's own text (OWN_TEXT). One without any does not compile.
import type { ErrorCode } from '../../errors.ts'
import { fill, inEachLanguage, type Language } from '../language.ts'

const ENGLISH = {
  bad_json: 'This was not sent by one of our forms. Please start again.',
  captcha_failed: 'The check that you are a person has failed. Please try again.',
  conflict: 'This account fits more than one of ours. Please sign in in another way.',
  current_password_invalid: 'The current password is wrong.',
  current_password_required: 'Please enter your current password.',
  email_address_not_authorized: 'No mail is sent to this address.',
  email_conflict_identity_not_deletable: 'The address of this account belongs to another one, so it stays.',
  email_exists: 'This email address cannot be used.',
  email_not_confirmed: 'Please confirm your email address first. The link is in the mail that we sent you.',
  email_provider_disabled: 'Signing in by email is disabled.',
  feature_disabled: 'This is disabled here.',
  flow_state_expired: 'This took too long, or it is done already. Please start again.',
  identity_already_exists: 'This account at the provider is linked already.',
  insufficient_aal: 'Please confirm with your second factor first.',
  invalid_credentials: 'The address or the password is wrong.',
  method_not_allowed: 'This page takes no form.',
  mfa_challenge_expired: 'This took too long. Please request a new code.',
  mfa_factor_name_conflict: 'You have a second factor of this name. Please choose another name.',
  mfa_factor_not_found: 'This has been removed already.',
  mfa_ip_address_mismatch: 'Your network has changed. Please request a new code.',
  mfa_recovery_codes_locked: 'Too many wrong codes. Please try again later.',
  mfa_recovery_codes_sole_factor: 'Recovery codes need another second factor. Add one first.',
  mfa_verification_failed: 'This code is wrong. Please check it and try again.',
  mfa_verification_rejected: 'You have been signed out, because a code was refused. Please sign in again.',
  mfa_verified_factor_exists: 'You have this second factor already.',
  not_found: 'This page does not exist.',
  otp_expired: 'This code is wrong or has expired.',
  over_capacity: 'Many people are signing in right now. Please try again in a moment.',
  over_email_send_rate_limit: 'A mail was requested only a moment ago, so no new one was sent.',
  over_request_rate_limit: 'Too many attempts. Please try again later.',
  over_sms_send_rate_limit: 'A text message was requested only a moment ago, so no new one was sent.',
  phone_exists: 'This phone number cannot be used.',
  phone_not_confirmed: 'Please confirm your phone number first.',
  phone_provider_disabled: 'Signing in by phone is disabled.',
  provider_disabled: 'This way to sign in is disabled.',
  provider_unavailable: 'This provider cannot be reached. Please try again in a moment.',
  reauthentication_needed: 'Please confirm with the code that we sent you.',
  request_entity_too_large: 'This is too long. Please shorten it.',
  request_timeout: 'This took too long. Please try again.',
  same_password: 'Please choose a password that differs from the old one.',
  service_unavailable: 'This is not available right now. Please try again in a moment.',
  session_not_found: 'Your session has ended. Please sign in again.',
  signup_disabled: 'New accounts are by invitation only.',
  single_identity_not_deletable: 'This is the last way to sign in, so it stays.',
  too_many_enrolled_mfa_factors: 'You have as many second factors as possible. Remove one first.',
  too_many_passkeys: 'You have as many passkeys as possible. Remove one first.',
  unexpected_failure: 'Something went wrong on our side. Please try again.',
  user_already_exists: 'There is an account with this address. Please sign in.',
  user_banned: 'This account is blocked.',
  validation_failed: 'Please check what you have entered.',
  weak_password: 'This password is too easy to guess. Please choose a longer one.',
  webauthn_credential_exists: 'This passkey is added already.',
  webauthn_verification_failed: 'The passkey could not be verified. Please try again.',
} satisfies Partial<Record<ErrorCode, string>>

type Explained = keyof typeof ENGLISH

/**
 * Codes that the API's own text explains: that of an operator's hook, and those that no form and no address of the
 * pages can cause.
 */
export const OWN_TEXT = [
  ...['hook_rejected', 'anonymous_provider_disabled', 'custom_provider_not_found', 'invite_not_found', 'not_admin'],
  ...['oauth_client_not_found', 'oauth_scope_not_found', 'over_oauth_scope_quota', 'insufficient_scope'],
  'over_oauth_client_quota',
  ...['oauth_authorization_not_found', 'oauth_consent_not_found', 'oauth_dynamic_client_registration_disabled'],
  ...['no_authorization', 'over_custom_provider_quota', 'precondition_failed', 'refresh_token_already_used'],
  ...['refresh_token_not_found', 'saml_provider_disabled', 'unexpected_audience', 'web3_provider_disabled'],
  ...['web3_unsupported_chain', 'mfa_phone_enroll_not_enabled', 'mfa_webauthn_enroll_not_enabled'],
] as const satisfies ErrorCode[]

/** Codes that have the sentence of another one. */
const SAME: Record<Exclude<ErrorCode, Explained | (typeof OWN_TEXT)[number]>, Explained> = {
  bad_code_verifier: 'flow_state_expired',
  bad_jwt: 'session_not_found',
  bad_oauth_callback: 'flow_state_expired',
  bad_oauth_state: 'flow_state_expired',
  flow_state_already_used: 'flow_state_expired',
  flow_state_not_found: 'flow_state_expired',
  hook_payload_invalid_content_type: 'service_unavailable',
  hook_payload_over_size_limit: 'service_unavailable',
  hook_timeout: 'service_unavailable',
  hook_timeout_after_retry: 'service_unavailable',
  identity_not_found: 'mfa_factor_not_found',
  manual_linking_disabled: 'feature_disabled',
  mfa_phone_verify_not_enabled: 'feature_disabled',
  mfa_recovery_codes_enroll_not_enabled: 'feature_disabled',
  mfa_recovery_codes_verify_not_enabled: 'feature_disabled',
  mfa_totp_enroll_not_enabled: 'feature_disabled',
  mfa_totp_verify_not_enabled: 'feature_disabled',
  mfa_webauthn_verify_not_enabled: 'feature_disabled',
  oauth_provider_not_supported: 'provider_disabled',
  passkey_disabled: 'feature_disabled',
  provider_email_needs_verification: 'email_not_confirmed',
  reauthentication_not_valid: 'otp_expired',
  session_expired: 'session_not_found',
  trusted_device_not_found: 'mfa_factor_not_found',
  user_not_found: 'session_not_found',
  webauthn_challenge_expired: 'request_timeout',
  webauthn_challenge_not_found: 'request_timeout',
}
const SAME_BY_CODE = new Map<string, string>(Object.entries(SAME))

const SENTENCES = inEachLanguage<Record<Explained, string>>({
  en: ENGLISH,
  de: {
    bad_json: 'Das kam nicht aus einem unserer Formulare. Bitte beginne von vorn.',
    captcha_failed: 'Die Prüfung, ob du ein Mensch bist, ist fehlgeschlagen. Bitte versuche es noch einmal.',
    conflict: 'Dieses Konto passt zu mehreren von uns. Bitte melde dich auf andere Art an.',
    current_password_invalid: 'Das bisherige Passwort ist falsch.',
    current_password_required: 'Bitte gib dein bisheriges Passwort ein.',
    email_address_not_authorized: 'An diese Adresse wird keine Mail gesendet.',
    email_conflict_identity_not_deletable: 'Die Adresse dieses Kontos gehört einem anderen. Deshalb bleibt es.',
    email_exists: 'Diese E-Mail-Adresse kann nicht verwendet werden.',
    email_not_confirmed:
      'Bitte bestätige zuerst deine E-Mail-Adresse. Der Link steht in der Mail, die du bekommen hast.',
    email_provider_disabled: 'Die Anmeldung mit E-Mail-Adresse ist ausgeschaltet.',
    feature_disabled: 'Das ist hier ausgeschaltet.',
    flow_state_expired: 'Das hat zu lange gedauert oder ist schon erledigt. Bitte beginne von vorn.',
    identity_already_exists: 'Dieses Konto beim Anbieter ist schon verknüpft.',
    insufficient_aal: 'Bitte bestätige zuerst mit deinem zweiten Faktor.',
    invalid_credentials: 'Die Adresse oder das Passwort ist falsch.',
    method_not_allowed: 'Diese Seite nimmt kein Formular an.',
    mfa_challenge_expired: 'Das hat zu lange gedauert. Bitte fordere einen neuen Code an.',
    mfa_factor_name_conflict: 'Du hast schon einen zweiten Faktor mit diesem Namen. Bitte wähle einen anderen.',
    mfa_factor_not_found: 'Das ist schon entfernt.',
    mfa_ip_address_mismatch: 'Dein Netzwerk hat gewechselt. Bitte fordere einen neuen Code an.',
    mfa_recovery_codes_locked: 'Zu viele falsche Codes. Bitte versuche es später noch einmal.',
    mfa_recovery_codes_sole_factor:
      'Wiederherstellungscodes brauchen einen anderen zweiten Faktor. Füge zuerst einen hinzu.',
    mfa_verification_failed: 'Dieser Code ist falsch. Bitte prüfe ihn und versuche es noch einmal.',
    mfa_verification_rejected: 'Du wurdest abgemeldet, weil ein Code abgelehnt wurde. Bitte melde dich neu an.',
    mfa_verified_factor_exists: 'Diesen zweiten Faktor hast du schon.',
    not_found: 'Diese Seite gibt es nicht.',
    otp_expired: 'Dieser Code ist falsch oder abgelaufen.',
    over_capacity: 'Gerade melden sich viele an. Bitte versuche es gleich noch einmal.',
    over_email_send_rate_limit: 'Eine Mail wurde gerade erst angefordert, deshalb wurde keine neue gesendet.',
    over_request_rate_limit: 'Zu viele Versuche. Bitte versuche es später noch einmal.',
    over_sms_send_rate_limit: 'Eine SMS wurde gerade erst angefordert, deshalb wurde keine neue gesendet.',
    phone_exists: 'Diese Telefonnummer kann nicht verwendet werden.',
    phone_not_confirmed: 'Bitte bestätige zuerst deine Telefonnummer.',
    phone_provider_disabled: 'Die Anmeldung mit Telefonnummer ist ausgeschaltet.',
    provider_disabled: 'Diese Art der Anmeldung ist ausgeschaltet.',
    provider_unavailable: 'Dieser Anbieter ist nicht erreichbar. Bitte versuche es gleich noch einmal.',
    reauthentication_needed: 'Bitte bestätige mit dem Code, den du bekommen hast.',
    request_entity_too_large: 'Das ist zu lang. Bitte kürze es.',
    request_timeout: 'Das hat zu lange gedauert. Bitte versuche es noch einmal.',
    same_password: 'Bitte wähle ein anderes Passwort als das bisherige.',
    service_unavailable: 'Das geht gerade nicht. Bitte versuche es gleich noch einmal.',
    session_not_found: 'Deine Sitzung ist beendet. Bitte melde dich neu an.',
    signup_disabled: 'Neue Konten gibt es nur auf Einladung.',
    single_identity_not_deletable: 'Das ist die letzte Art, dich anzumelden. Deshalb bleibt sie.',
    too_many_enrolled_mfa_factors: 'Mehr zweite Faktoren sind nicht möglich. Entferne zuerst einen.',
    too_many_passkeys: 'Mehr Passkeys sind nicht möglich. Entferne zuerst einen.',
    unexpected_failure: 'Bei uns ist etwas schiefgegangen. Bitte versuche es noch einmal.',
    user_already_exists: 'Mit dieser Adresse gibt es schon ein Konto. Bitte melde dich an.',
    user_banned: 'Dieses Konto ist gesperrt.',
    validation_failed: 'Bitte prüfe deine Angaben.',
    weak_password: 'Dieses Passwort ist zu leicht zu erraten. Bitte wähle ein längeres.',
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
  const key = SAME_BY_CODE.get(code) ?? code
  const sentences: Partial<Record<string, string>> = SENTENCES[language]
  const sentence = (Object.hasOwn(sentences, key) && sentences[key]) || message
  if (retryAfterSeconds === undefined) return sentence
  const { later, minutes } = WAIT[language]
  const wait =
    retryAfterSeconds <= 120
      ? fill(later, { seconds: retryAfterSeconds })
      : fill(minutes, { minutes: Math.ceil(retryAfterSeconds / 60) })
  return `${sentence} ${wait}`
}
