// SPDX-License-Identifier: Apache-2.0
// One block of MXFP4 from 32 float32 words: the recipe `mxfp4` of mx, that is E2M1 elements under an
// E8M0 scale by the rule floor (OCP MX 1.0, section 6.3), rounded to nearest, ties to the even code.
// Combinational and synthesizable (Verilog-2001).
module mxfp4_quantizer #(
    parameter N = 32
) (
    input  wire [32*N-1:0] x,     // element i is x[32*i +: 32]
    output wire [7:0]      scale,  // 2^(scale-127); 255 is NaN
    output wire [4*N-1:0]  codes   // element i is codes[4*i +: 4]: sign, then 0 0.5 1 1.5 2 3 4 6
);
    // The largest exponent decides the scale; one NaN or Inf (exponent 255) makes it NaN.
    reg [7:0] largest;
    integer i;
    always @* begin
        largest = 0;
        for (i = 0; i < N; i = i + 1)
            if (x[32*i + 23 +: 8] > largest) largest = x[32*i + 23 +: 8];
    end
    wire invalid = largest == 8'd255;
    // The largest element gets the exponent 2, that of 4 and 6. Below 2^-127 there is no scale.
    wire [7:0] code = largest > 8'd2 ? largest - 8'd2 : 8'd0;
    assign scale = invalid ? 8'd255 : code;

    genvar k;
    generate
        for (k = 0; k < N; k = k + 1) begin : element
            wire       sign     = x[32*k + 31];
            wire [7:0] exponent = x[32*k + 23 +: 8];
            // Subnormals have the exponent of the smallest normal and no leading one.
            wire [7:0]  e = exponent == 0 ? 8'd1 : exponent;
            wire [23:0] m = {exponent != 0, x[32*k +: 23]};
            // |x| / 2^(code-127) is m 2^-(21+s). Beyond s = 5 it is less than 1/8, which rounds to 0;
            // up to there nothing is shifted out: w counts units of 2^-26.
            wire [8:0]  s = {1'b0, code} + 9'd2 - {1'b0, e};
            wire [28:0] w = s > 9'd5 ? 29'd0 : {m, 5'b0} >> s[2:0];
            // Half way between neighbours in units of 1/4; the even code takes a tie.
            localparam [28:0] QUARTER = 29'd1 << 24;
            wire [2:0] magnitude = w <=  1 * QUARTER ? 3'd0
                                 : w <   3 * QUARTER ? 3'd1
                                 : w <=  5 * QUARTER ? 3'd2
                                 : w <   7 * QUARTER ? 3'd3
                                 : w <= 10 * QUARTER ? 3'd4
                                 : w <  14 * QUARTER ? 3'd5
                                 : w <= 20 * QUARTER ? 3'd6
                                                     : 3'd7;
            assign codes[4*k +: 4] = {sign, magnitude};
        end
    endgenerate
endmodule
