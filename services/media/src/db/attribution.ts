/** Who made a clip, as its owner says. How it is shown: ../pages/credit.ts. */
export interface Attribution {
  /** twitter, reddit, instagram, or a custom URL. */
  site: string
  user?: string
  url?: string
}
