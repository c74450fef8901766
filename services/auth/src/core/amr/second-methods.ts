/** Methods that raise a session to aal2, as its `amr` names them. Acts that need aal2: ../freshness/acts.ts. */
export const SECOND_METHODS = {
  totp: 'totp',
  phone: 'mfa/phone',
  webauthn: 'mfa/webauthn',
  recoveryCode: 'mfa/recovery_code',
} as const

export type SecondMethod = (typeof SECOND_METHODS)[keyof typeof SECOND_METHODS]

/** Method in the `amr` of sessions whose second factor a device replaced. */
export const TRUSTED_DEVICE = 'trusted_device'
