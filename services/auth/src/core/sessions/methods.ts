/** Methods that prove an address the user already had; such a user may have forgotten the password. */
export const MAILBOX_METHODS: readonly string[] = ['otp', 'magiclink', 'recovery']

/** Methods by any code or link to an address. The others prove less: the address is new to the user. */
export const ADDRESS_METHODS: readonly string[] = [
  ...MAILBOX_METHODS,
  ...['email/signup', 'signup', 'invite', 'sms', 'email_change', 'phone_change'],
]
