/** Methods that prove a known address; such a user may have forgotten the password. */
export const MAILBOX_METHODS: readonly string[] = ['otp', 'magiclink', 'recovery']

/** Methods by any code or link. Those not above prove less: the address was new to the user. */
export const ADDRESS_METHODS: readonly string[] = [
  ...MAILBOX_METHODS,
  ...['email/signup', 'signup', 'invite', 'sms', 'email_change', 'phone_change'],
]
