/** Methods of sessions begun by a link or code to an address the user had: the password may be forgotten. */
export const MAILBOX_METHODS: readonly string[] = ['otp', 'magiclink', 'recovery']

/** Methods of sessions begun by any code or link to an address; a change of address proves less, a new one was not the user's. */
export const ADDRESS_METHODS: readonly string[] = [
  ...MAILBOX_METHODS,
  ...['email/signup', 'signup', 'invite', 'sms', 'email_change', 'phone_change'],
]
