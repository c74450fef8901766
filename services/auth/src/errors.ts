import { errorFactory } from '@services/common/errors'

/**
 * Every expected failure of the auth service: code, usual status, public text. Statuses that depend on the endpoint are
 * given where the error is thrown. Source: contract/auth-core.md 15.
 */
export const errorCatalogue = {
  unexpected_failure: { status: 500, message: 'Something went wrong on our side' },
  service_unavailable: { status: 503, message: 'The service is temporarily unavailable, try again shortly' },
  over_capacity: { status: 503, message: 'Too many sign-ins at once, try again shortly' },
  request_timeout: { status: 504, message: 'The request took too long' },
  not_found: { status: 404, message: 'There is nothing at this address' },
  method_not_allowed: { status: 405, message: 'This address does not take that method' },
  bad_json: { status: 400, message: 'The body is not valid JSON or a field has the wrong type' },
  validation_failed: { status: 400, message: 'A field is missing or not valid' },
  request_entity_too_large: { status: 413, message: 'The request body is larger than 1 MiB' },
  no_authorization: { status: 401, message: 'This endpoint needs a Bearer token' },
  bad_jwt: { status: 403, message: 'The token is not valid or has expired' },
  user_not_found: { status: 403, message: 'The user of this token does not exist' },
  session_not_found: { status: 403, message: 'The session of this token does not exist any more' },
  session_expired: { status: 400, message: 'The session has expired, sign in again' },
  user_banned: { status: 403, message: 'This user is banned' },
  not_admin: { status: 403, message: 'This operation is for admins' },
  invalid_credentials: { status: 400, message: 'Invalid login credentials' },
  phone_not_confirmed: { status: 400, message: 'Phone not confirmed' },
  email_address_not_authorized: { status: 400, message: 'This service sends no mail to this address' },
  email_exists: { status: 422, message: 'A user with this email address has already been registered' },
  phone_exists: { status: 422, message: 'A user with this phone number has already been registered' },
  current_password_required: { status: 400, message: 'Changing the password or an address needs the current password' },
  current_password_invalid: { status: 400, message: 'The current password is wrong' },
  flow_state_not_found: { status: 404, message: 'This code is not known, or was used before' },
  flow_state_expired: { status: 422, message: 'This code has expired, start again' },
  bad_code_verifier: { status: 400, message: 'The code verifier does not belong to the code challenge' },
  email_not_confirmed: { status: 400, message: 'Email not confirmed' },
  refresh_token_not_found: { status: 400, message: 'Invalid Refresh Token: Refresh Token Not Found' },
  refresh_token_already_used: { status: 400, message: 'Invalid Refresh Token: Already Used' },
  signup_disabled: { status: 422, message: 'Signups not allowed for this instance' },
  email_provider_disabled: { status: 400, message: 'Email signups are disabled' },
  phone_provider_disabled: { status: 400, message: 'Phone signups are disabled' },
  anonymous_provider_disabled: { status: 422, message: 'Anonymous sign-ins are disabled' },
  user_already_exists: { status: 400, message: 'User already registered' },
  weak_password: { status: 422, message: 'The password is too weak' },
  same_password: { status: 422, message: 'New password should be different from the old password' },
  reauthentication_needed: { status: 400, message: 'Changing the password needs a nonce, see /reauthenticate' },
  reauthentication_not_valid: { status: 422, message: 'The nonce is wrong or has expired' },
  captcha_failed: { status: 400, message: 'captcha protection: request disallowed' },
  otp_expired: { status: 403, message: 'The link or code is invalid or has expired' },
  over_request_rate_limit: { status: 429, message: 'Request rate limit reached' },
  over_sms_send_rate_limit: { status: 429, message: 'SMS rate limit exceeded' },
  over_email_send_rate_limit: { status: 429, message: 'Email rate limit exceeded' },
} as const

export type ErrorCode = keyof typeof errorCatalogue

export const apiError = errorFactory(errorCatalogue)
