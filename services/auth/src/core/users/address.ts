/** An e-mail address in lower case, or the digits of a phone number. */
export interface Address {
  channel: 'email' | 'phone'
  value: string
}
