// Acts that add or remove a way in or a second factor, and what each demands. The one rule: whatever does one of them asks
// requireSecondFactor and requireFresh (require-fresh.ts); ways-in.test.ts goes through every door. The table in
// docs/reference/auth/http.md is generated from this one.

export interface Act {
  /** Requests that do it, as the table of the reference names them. */
  doors: readonly string[]
  /** Whether the current password is demanded where a switch says so, and a recent sign-in by password does not replace it. */
  needsPassword?: true
  /** The same for a nonce. */
  needsNonce?: true
  /** Whether it leads to a second factor: where one is demanded of users who have none, this stays open to them. */
  leadsToFactor?: true
  /** Refusal of a session that has proven less than its user could: status and text as the client knows them. */
  refusal: { status: 401 | 403 | 422; message?: string }
}

const ACCOUNT = {
  status: 401,
  message: 'AAL2 session is required to update email or password when MFA is enabled.',
} as const
const ENROLL = { status: 403, message: 'AAL2 required to enroll a new factor' } as const

/** auth-js has parameters for the password and the nonce in `updateUser` alone; all else accepts a recent sign-in instead. */
export const ACTS = {
  'new password': { doors: ['PUT /user'], needsPassword: true, needsNonce: true, refusal: ACCOUNT },
  'new e-mail address': { doors: ['PUT /user'], needsPassword: true, refusal: ACCOUNT },
  'new number': { doors: ['PUT /user'], needsPassword: true, refusal: ACCOUNT },
  'own app_metadata': { doors: ['PUT /user'], refusal: ACCOUNT },
  'linking an identity': {
    doors: ['GET /user/identities/authorize', 'POST /token?grant_type=id_token with link_identity'],
    refusal: { status: 403 },
  },
  'unlinking an identity': { doors: ['DELETE /user/identities/{id}'], refusal: { status: 403 } },
  'beginning a factor': { doors: ['POST /factors'], leadsToFactor: true, refusal: ENROLL },
  'proving a factor for the first time': {
    doors: ['POST /factors/{id}/verify'],
    leadsToFactor: true,
    refusal: ENROLL,
  },
  'removing a proven factor': {
    doors: ['DELETE /factors/{id}'],
    refusal: { status: 422, message: 'AAL2 required to unenroll verified factor' },
  },
  'making recovery codes': { doors: ['POST /factors/recovery-codes'], refusal: { status: 403 } },
  'replacing recovery codes': { doors: ['POST /factors/recovery-codes/regenerate'], refusal: { status: 403 } },
  'removing recovery codes': { doors: ['DELETE /factors/recovery-codes'], refusal: { status: 403 } },
} as const satisfies Record<string, Act>

export type ActName = keyof typeof ACTS
